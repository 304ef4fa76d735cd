"""Every secret of the corpus is found, nothing else changes, and what cannot be told is named."""

from __future__ import annotations

import pytest
from support import secret_measure as measuring
from support.secret_corpus import CANNOT_BE_TOLD, Sample, cannot_be_told, negatives, positives

from stepfork.core.redaction import Redactor
from stepfork.core.redaction_rules import Rules

POSITIVES, NEGATIVES = positives(), negatives()


def named(samples: list[Sample]) -> list[object]:
    return [pytest.param(sample, id=sample.name.replace(" ", "-")) for sample in samples]


def test_the_corpus_is_large_and_each_sample_another_one() -> None:
    assert len(POSITIVES) >= 150
    assert len(NEGATIVES) >= 250
    samples = [*POSITIVES, *NEGATIVES, *cannot_be_told()]
    assert (
        len({sample.name for sample in samples}) == len({sample.text for sample in samples}) == len(samples)
    )
    assert all(secret in sample.text for sample in POSITIVES for secret in sample.secrets)
    assert all(sample.secrets for sample in POSITIVES)


@pytest.mark.parametrize("sample", named(POSITIVES))
def test_C112_a_secret_is_found_by_shape_or_context(sample: Sample) -> None:
    for text in measuring.forms(sample):
        redacted = Redactor().redact_text(text)
        assert not [secret for secret in sample.secrets if measuring.leaks(secret, redacted)], redacted
        value = {"JrX": [{"content": text}]}
        assert Redactor().redact(value) == {"JrX": [{"content": redacted}]}


@pytest.mark.parametrize("sample", named(NEGATIVES))
def test_C114_what_is_no_secret_is_left_alone(sample: Sample) -> None:
    for text in measuring.forms(sample):
        value = {"JrX": [text, {"content": text}]}
        assert Redactor().redact(value) is value
        assert Redactor().redact_text(text) is text


@pytest.mark.parametrize("sample", named(cannot_be_told()))
def test_what_cannot_be_told_is_left_alone_until_it_is_named(sample: Sample) -> None:
    """The list is no excuse for what is found after all; each of them is found once the user names it."""
    value = {"JrX": sample.text}
    assert Redactor().redact(value) is value, "it can be told: take it off the list"
    (secret,) = sample.secrets
    told = Redactor(Rules.compile(keys=["note"])).redact([{"note": secret}, sample.text])
    assert not measuring.leaks(secret, str(told))
    assert CANNOT_BE_TOLD[sample.name][1]


def test_the_detectors_are_measured_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other detector does find and flag; on a few samples, since it takes its time."""
    by_name = {sample.name: sample for sample in [*POSITIVES, *NEGATIVES]}
    monkeypatch.setattr(measuring, "positives", lambda: [by_name["github classic"], by_name["cerebras"]])
    monkeypatch.setattr(
        measuring, "negatives", lambda: [by_name["git sha"], by_name["sha256"], by_name["url"]]
    )
    figures = measuring.measure(measuring.detect_secrets_shapes)
    assert (figures.texts, figures.clean_texts) == (6, 9)
    assert set(figures.missed) == {"cerebras"}
    own = measuring.measure(measuring.ours)
    assert (own.missed, own.damaged) == ([], [])
    assert own.row("stepfork") == "| stepfork | 6 of 6 (100%) | 0 of 9 (0%) |"
