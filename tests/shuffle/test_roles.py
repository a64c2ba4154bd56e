"""Devices, the shuffler and the server: what is refused, what is forgotten, what leaves."""

import dataclasses
import pickle

import numpy as np
import pytest

from dpbandits import ZCDP, ArgumentError
from dpbandits.errors import SubmissionError
from dpbandits.shuffle import (
    Analyzer,
    BitSum,
    GaussianReports,
    LaplaceShares,
    Messages,
    ModularSum,
    Randomizer,
    Shuffler,
)

SHAPE = {"batch": 3, "dimension": 2, "bound": 1.0, "levels": 4, "noise": 6}
PROTOCOLS = [kind(**SHAPE) for kind in (BitSum, ModularSum, GaussianReports, LaplaceShares)]
every = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: type(p).__name__)


def parties(protocol, **options):
    randomizer = Randomizer(protocol, noise="simulation", seed=1)
    return randomizer, Shuffler(protocol, noise="simulation", seed=2, **options)


@every
@pytest.mark.parametrize("people", [0, 1, 2, 3])
def test_the_server_cannot_tell_how_many_came(protocol, people):
    randomizer, shuffler = parties(protocol)
    for sender in range(people):
        shuffler.submit(randomizer.encode([0.5, 0.1]), sender)
    mixed = shuffler.close()
    assert mixed.values.shape == protocol.mixed_shape
    assert Analyzer(protocol).aggregate(mixed).shape == (2,)


@every
def test_short_batches_are_discarded_where_that_was_chosen(protocol):
    randomizer, shuffler = parties(protocol, short="discard")
    for sender in range(2):
        shuffler.submit(randomizer.encode(), sender)
    assert shuffler.close() is None
    for sender in range(3):  # the two of before may come again
        shuffler.submit(randomizer.encode(), sender)
    assert shuffler.close() is not None


@every
def test_full_batches_take_nobody_else(protocol):
    randomizer, shuffler = parties(protocol)
    for sender in range(3):
        shuffler.submit(randomizer.encode(), sender)
    with pytest.raises(SubmissionError, match="the batch is full: it has 3 records"):
        shuffler.submit(randomizer.encode(), 3)
    with pytest.raises(SubmissionError, match="1 records too many"):
        shuffler.shuffle([randomizer.encode()] * 4)
    shuffler.close()
    shuffler.submit(randomizer.encode(), 3)


@every
def test_a_sender_has_one_record_a_batch(protocol):
    randomizer, shuffler = parties(protocol)
    shuffler.submit(randomizer.encode(), "Ann")
    with pytest.raises(SubmissionError, match="already submitted to this batch") as refused:
        shuffler.submit(randomizer.encode(), "Ann")
    assert "Ann" not in str(refused.value)
    with pytest.raises(SubmissionError, match="one record, got 2"):
        shuffler.submit(randomizer.encode_many(np.zeros((2, 2))), "Ben")
    shuffler.close()
    shuffler.submit(randomizer.encode(), "Ann")


@every
def test_a_batch_has_one_version(protocol):
    _, shuffler = parties(protocol, version="a")
    old, new = (Randomizer(protocol, noise="simulation", version=v) for v in ("a", "b"))
    shuffler.submit(old.encode(), 1)
    for strange in (new.encode(), dataclasses.replace(old.encode(), version=0)):
        with pytest.raises(SubmissionError, match="takes messages of version 'a'"):
            shuffler.submit(strange, 2)
    with pytest.raises(SubmissionError, match="takes messages of version 'a'"):
        shuffler.shuffle([old.encode(), new.encode()])
    assert shuffler.close("b").version == "a"
    shuffler.submit(new.encode(), 1)
    assert shuffler.close().version == "b"
    for bad in (None, 1.5, True):
        with pytest.raises(ArgumentError, match="version must be"):
            Randomizer(protocol, version=bad)


@every
def test_messages_travel_as_json(protocol):
    randomizer, shuffler = parties(protocol)
    sent = randomizer.encode([0.5, 0.1])
    again = Messages.from_json(sent.to_json())
    assert (again.values.tolist(), again.version) == (sent.values.tolist(), 0)
    shuffler.submit(again, 1)
    assert shuffler.close() is not None


ODD = ["[1]", "{", "7", '{"values": [[1]]}', '{"values": [[1], []], "version": 0}', "[" * 10**5]
ODD += ['{"values": [[1]], "version": true}', '{"values": [[1]], "version": [0]}']


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_texts_of_strangers_are_refused(text):
    with pytest.raises(SubmissionError, match=r"^text must be the JSON of messages$"):
        Messages.from_json(text)


@pytest.mark.parametrize("values", ['"ab"', "[[1e3, 2]]", "[[9223372036854775808000, 1]]", "{}"])
def test_what_only_looks_like_messages_is_refused_by_the_shuffler(values):
    _, shuffler = parties(PROTOCOLS[1])
    with pytest.raises(SubmissionError, match="a record must be integers"):
        shuffler.submit(Messages.from_json(f'{{"values": {values}, "version": 0}}'), 1)


def test_simulated_noise_goes_nowhere_else():
    protocol = PROTOCOLS[2]
    told = Randomizer(protocol).to_dict()
    assert told["class"] == "GaussianReports"
    numerator, denominator = map(int, told["sigma_squared"])
    assert numerator == protocol.noise**2 * denominator
    with pytest.raises(ArgumentError, match=r"^noise must be 'secure' for a device outside"):
        Randomizer(protocol, noise="simulation").to_dict()


@every
def test_devices_that_lie_are_refused_and_the_others_lose_nothing(protocol):
    """The refusal depends on the lie alone: the same with other people's records before it."""
    shape, low, high = protocol.record
    lies = [
        np.full((1, *shape), high + 1),
        np.full((1, *shape), low - 1, np.int64),
        np.full((1, *shape), float(high)),
        np.zeros((1, *shape, 1), np.int64),
        np.zeros((1, shape[0] + 1, *shape[1:]), np.int64),
        [[0]],
    ]
    told = []
    for vector in ([0.9, 0.1], [-0.5, 0.5]):
        randomizer, shuffler = parties(protocol)
        shuffler.submit(randomizer.encode(vector), 1)
        for lie in lies:
            with pytest.raises(SubmissionError) as refused:
                shuffler.submit(Messages(lie, 0), 2)
            told.append(str(refused.value))
        shuffler.submit(randomizer.encode(vector), 2)
        assert shuffler.close() is not None
    assert told[: len(lies)] == told[len(lies) :]


@every
def test_no_device_decides_the_type_of_a_batch(protocol):
    randomizer, shuffler = parties(protocol)
    shuffler.submit(randomizer.encode(), 1)
    shuffler.submit(Messages(np.zeros((1, *protocol.record[0]), np.uint64), 0), 2)
    assert Analyzer(protocol).aggregate(shuffler.close()).shape == (2,)


def test_a_liar_moves_a_sum_of_bits_by_what_one_record_can_hold():
    protocol = PROTOCOLS[0]
    randomizer, shuffler = parties(protocol)
    ones = Messages(np.ones((1, 2, 14), np.uint8), 0)
    honest = [randomizer.encode(), randomizer.encode()]
    sums = Analyzer(protocol).aggregate(shuffler.shuffle([*honest, ones]))
    assert np.all(sums <= protocol.step * (3 * 14 - 3 * (4 + 1.5)))


@every
def test_what_leaves_is_integers_and_a_version(protocol):
    """No identity, no order of arrival, nothing of the type of a sender."""
    randomizer, shuffler = parties(protocol)
    for sender in ("Ann", "Ben", "Cleo"):
        shuffler.submit(randomizer.encode([0.3, -0.4]), sender)
    mixed = shuffler.close()
    assert [field.name for field in dataclasses.fields(mixed)] == ["values", "version"]
    assert mixed.values.dtype.kind in "iu"
    assert mixed.values.base is None or mixed.values.base.shape == mixed.values.shape
    assert all(name not in pickle.dumps(mixed) for name in (b"Ann", b"Ben", b"Cleo"))
    assert b"Ann" not in pickle.dumps(shuffler)  # nor does the shuffler remember


@every
def test_the_order_of_arrival_decides_nothing(protocol):
    """The same records in another order have the same law: here, the same multiset leaves."""
    randomizer, _ = parties(protocol)
    records = [randomizer.encode([x, -x]) for x in (0.9, 0.0, -0.9)]
    there, back = (
        Shuffler(protocol, noise="simulation", seed=3).shuffle(batch).values
        for batch in (records, records[::-1])
    )
    if there.ndim == 1:
        assert there.tolist() == back.tolist()
    else:
        axis = 1 if isinstance(protocol, BitSum) else 0
        assert np.sort(there, axis=axis).tolist() == np.sort(back, axis=axis).tolist()
        assert there.tolist() != records[0].values.tolist()


@every
def test_a_randomizer_travels_and_says_when_it_protects_nobody(protocol):
    secure = pickle.loads(pickle.dumps(Randomizer(protocol)))
    assert secure.caveats == ()
    assert secure.encode([0.1, 0.2]).values.shape == (1, *protocol.record[0])
    simulated = Randomizer(protocol, noise="simulation", seed=1)
    assert "protects nobody" in simulated.caveats[0]
    assert "protects nobody" in Shuffler(protocol, noise="simulation").caveats[0]
    twin = Randomizer(protocol, noise="simulation", seed=1)
    assert np.array_equal(simulated.encode().values, twin.encode().values)
    with pytest.raises(ArgumentError, match="seed must be None with noise='secure'"):
        Randomizer(protocol, seed=1)


@every
def test_bad_input(protocol):
    randomizer, _ = parties(protocol)
    with pytest.raises(ArgumentError, match="vectors must have shape"):
        randomizer.encode([1.0])
    with pytest.raises(ArgumentError, match="vectors must have shape"):
        randomizer.encode_many(np.zeros((4, 2)))
    with pytest.raises(ArgumentError, match="short must be one of"):
        Shuffler(protocol, short="wait")
    with pytest.raises(ArgumentError, match="messages must hold integers of shape"):
        Analyzer(protocol).aggregate(randomizer.encode())
    with pytest.raises(ArgumentError, match="budget must be"):
        type(protocol).calibrated(ZCDP(1.0), batch=3, dimension=2, bound=1.0)
