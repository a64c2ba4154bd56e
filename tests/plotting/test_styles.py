"""Labels that tell policies apart, and marks that no two of them share."""

from dpbandits.plotting.styles import PolicyFacts, plot_styles


def labels(**policies: PolicyFacts) -> list[str]:
    return [style.label for style in plot_styles(policies).values()]


def test_labels_say_what_differs_and_no_more():
    assert labels(
        a=PolicyFacts("A", {"n_arms": 4, "b": 1.0, "c": True, "d": None}),
        b=PolicyFacts("A", {"n_arms": 4, "b": 1.0, "c": False, "d": None}),
        c=PolicyFacts("B", {"n_arms": 4, "b": 3.0}, remark="local"),
    ) == ["A (c=True)", "A (c=False)", "B (local)"]


def test_values_are_written_as_in_a_study():
    assert labels(
        a=PolicyFacts("A", {"x": 1.0, "y": "word", "z": (0.0, 2.0)}),
        b=PolicyFacts("A", {"x": 0.25, "y": "other", "z": (0.0, 1.5)}),
    ) == ["A (x=1, y='word', z=(0, 2))", "A (x=0.25, y='other', z=(0, 1.5))"]


def test_a_name_stands_for_class_and_arguments_but_not_for_a_remark():
    assert labels(
        a=PolicyFacts("A", {"b": 1}, name="ours"),
        b=PolicyFacts("A", {"b": 2}, name="theirs", remark="no guarantee"),
        c=PolicyFacts("A", {"b": 3}),
    ) == ["ours", "theirs (no guarantee)", "A (b=3)"]


def test_a_name_like_another_policys_label_misleads_nobody():
    assert labels(a=PolicyFacts("A", {"b": 1}, name="B"), b=PolicyFacts("B", {"c": 2})) == [
        "B",
        "B (c=2)",
    ]


def test_sentences_leave_arguments_to_the_tables():
    styles = plot_styles(
        {
            "a": PolicyFacts("A", {"b": 1}),
            "b": PolicyFacts("A", {"b": 2}),
            "c": PolicyFacts("A", {"b": 3}, name="ours"),
            "d": PolicyFacts("D", {"b": 3}, remark="local"),
        }
    )
    assert [(style.phrase, style.short_phrase) for style in styles.values()] == [
        ("A (b=1)", "a variant of A"),
        ("A (b=2)", "a variant of A"),
        ("“ours”", "“ours”"),
        ("D (local)", "D"),
    ]


def test_one_policy_in_environments_of_several_sizes_looks_alike():
    small, large = plot_styles(
        {"a": PolicyFacts("A", {"n_arms": 4}), "b": PolicyFacts("A", {"n_arms": 9})}
    ).values()
    assert small == large


def test_no_two_policies_look_alike():
    styles = list(plot_styles({str(i): PolicyFacts(f"P{i}", {}) for i in range(40)}).values())
    first = styles[:12]
    assert len({one.colour for one in first}) == len({one.marker for one in first}) == 12
    assert len({(one.colour, one.marker) for one in styles}) == 40
