from fedlap_app.sums.training.chance import round_seed


def test_seeds_differ_by_secret_settings_stage_and_round():
    first = (b"a secret of 32 bytes, or so it is", "settings", 0, 1)
    others = [(b"another secret", *first[1:]), (first[0], "others", 0, 1), (*first[:2], 1, 1),
              (*first[:2], 0, 2)]  # fmt: skip
    seeds = {round_seed(*each) for each in (first, *others)}
    assert len(seeds) == 5
    assert round_seed(*first) in seeds
    assert all(0 <= seed < 2**63 for seed in seeds)
