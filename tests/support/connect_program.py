"""The data functions of matchmill.spark through Spark Connect; run as a process of its own.

Prints one JSON object, which `test_connect.py` compares with what is expected.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import matchmill as mm
from matchmill import spark as ms
from matchmill.lab.workloads import dataframes as generate
from matchmill.lab.workloads.standard import standard
from matchmill.spark.event_statistics import sample_events
from tests.support.spark_session import TEST_SETTINGS


def main(folder: str) -> dict[str, Any]:
    from pyspark.sql import SparkSession

    warnings.simplefilter("ignore")  # settings that a running server cannot change
    spark = SparkSession.builder.remote("local[2]").config(map=TEST_SETTINGS).getOrCreate()
    subscriptions = spark.createDataFrame(
        [("a", "x = 1"), ("a", "x = 2"), ("b", "y >"), ("c", "x > 5")],
        "subscription_id string, expression string",
    )
    ingested = ms.ingest_subscriptions(subscriptions)
    found: dict[str, Any] = {"subscriptions": ingested.write(f"{folder}/out")}
    events = spark.createDataFrame(
        [(1, '{"x": 1}'), (2, '{"x": 4}'), (3, "{")], "event_id int, event string"
    )
    checked = ms.ingest_events(events, layout="json")
    found["events"] = checked.counts()
    pairs = spark.createDataFrame([(2, "c")], "event_id int, subscription_id string")
    misses = ms.near_misses(ingested.accepted, checked.accepted, pairs, layout="json").collect()
    found["misses"] = [(row["condition"], row["distance"]) for row in misses]
    table = ms.statistics(checked.accepted, ingested.accepted, layout="json")
    found["truths"] = {
        row["value"]: row["n"] for row in table.where("kind = 'condition'").collect()
    }
    found["sampled"] = sorted(event["x"] for event in sample_events(table, 4))
    spec = standard("ads").changed(n_subscriptions=50, n_events=5)
    found["generated"] = generate.subscriptions(spark, spec).count()
    found["event"] = generate.events(spark, spec, form="json").count()
    engine = mm.Engine()
    engine.subscribe("u", "x = 1")
    engine.save(f"{folder}/saved")
    ms.register_source(spark)
    loaded = spark.read.format("matchmill").load(f"{folder}/saved").collect()
    found["loaded"] = [tuple(row) for row in loaded]
    spark.stop()
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
