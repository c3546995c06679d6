"""Columns of each kind, opened from files and from values in memory."""

from dataclasses import replace

import shuffledp as sdp
from shuffledp.collection.questions import open_column
from shuffledp.collection.questions.categories import answers
from shuffledp.collection.source.columns import Ball, Range
from shuffledp.collection.source.tables import Reading, source_of_values
from shuffledp.core.labels import checked_domain


def open_table(path, column, *, domain=None, **reading):
    question = None if domain is None else sdp.Categories(domain)
    return open_column(path, column, question, **reading)


def answers_from_values(values, *, domain=None, **reading):
    listed = None if domain is None else checked_domain(domain)
    source = replace(source_of_values("answer", values), reading=Reading(**reading))
    return answers(source, listed)


def open_numbers(path, columns, *, limits, **reading):
    if isinstance(limits, Ball):
        question = sdp.VectorMean(columns, norm_bound=limits.norm_bound)
        return open_column(path, None, question, **reading)
    return open_column(path, columns, sdp.Mean(limits.low, limits.high), **reading)


def numbers_from_values(values, *, names, limits, is_vector=False):
    if is_vector:
        return sdp.VectorMean(names, norm_bound=limits.norm_bound).column(values)
    return sdp.Mean(limits.low, limits.high).read(source_of_values(names[0], values))


def open_answer_sets(path, column, *, domain, max_answers, **reading):
    return open_column(path, column, sdp.AnswerSets(domain, max_answers=max_answers), **reading)


def answer_sets_from_values(values, *, domain, max_answers):
    return sdp.AnswerSets(domain, max_answers=max_answers).column(values)


__all__ = ["Ball", "Range"]
