"""Experiments as data, results as files, tables and plots made from the files.

`spec.py` reads experiments, `measure.py` runs one point of one, `results.py` keeps what was
measured, `compare.py` judges two runs, `report.py` makes a page. `matchmill bench` is the way in.
"""
