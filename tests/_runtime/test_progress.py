"""Progress: every batch is passed on, and the bar ends full."""

from cqrf._runtime.progress import WIDTH, show_progress


def test_the_bar_is_redrawn_after_each_batch_and_the_batches_are_passed_on(capsys):
    assert list(show_progress(iter("abc"), 3, 40)) == ["a", "b", "c"]
    found = capsys.readouterr()
    assert found.out == ""
    *lines, end = found.err.split("\r")[1:]
    lines.append(end.removesuffix("\n"))
    assert end.endswith("\n")
    assert [line.split("] ")[1].split(",")[0] for line in lines] == [
        "0/40 trees", "13/40 trees", "26/40 trees", "40/40 trees"
    ]  # fmt: skip
    bars = [line.split("]")[0].removeprefix("[") for line in lines]
    assert [bar.count("#") for bar in bars] == [0, 9, 19, WIDTH]
    assert {len(bar) for bar in bars} == {WIDTH}


def test_the_bar_names_what_it_counts(capsys):
    list(show_progress([1], 1, 5, noun="trials"))
    assert "5/5 trials" in capsys.readouterr().err
