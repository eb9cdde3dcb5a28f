"""The data source "matchmill" for `spark.read` and `spark.readStream`."""
