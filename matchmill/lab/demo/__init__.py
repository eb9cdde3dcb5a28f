"""The tour that `script/demo` gives, in one process and with Spark."""
