"""The indexes of five papers and what they compare with, for experiments.

    ps_tree               PS-Tree: PSTBloom, PSTHash, and the tree itself as a predicate index
    be_tree               BE-Tree
    op_index              OpIndex, over conjunctions and over conjunctions of disjunctions
    two_stage             Two-stage: counting with a matrix, and matching inside a database
    expensive_operators   Expensive operators: in which order to evaluate conditions that cost much
    baselines             what several of the papers compare with
    predicate_index       indexes of the predicates of one dimension, which PS-Tree compares
    common                what several of these share

The docstring of each folder is the map from the paper's sections to files, with every deviation.
The product does not import anything from here; an engine takes one of these indexes by its name,
through `index/registry.py`. All of them work on keys (integers), which the encoding makes: a
clause is a conjunction of predicates, each a set of intervals of keys of one dimension, and key 0
stands for absence. So all of them support every operator of the language, and a predicate may
accept absence, which no paper considers.
"""
