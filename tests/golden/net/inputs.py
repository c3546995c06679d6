"""The files that the calls read, written by arithmetic, and a ledger."""

import json
from pathlib import Path

from golden.net.python_calls import budget

NUM_PEOPLE = 300


def survey() -> str:
    """People along six streets, whose answers follow the place, with other columns."""
    rows = ["lat,lon,age,answer,colour,number,x,y,site,drugs"]
    for person in range(NUM_PEOPLE):
        street, house = divmod(person, 50)
        answer = "yes" if (street < 3) != (house % 7 == 0) else "no"
        colour = ("red", "green", "blue")[person * 7 % 10 % 3]
        number = person * 37 % 101 / 100
        drugs = ["", "a", "a;b", "c", "b;c"][person % 5]
        site = ["a.org", "b.org", "c.org", "far away.org"][person * person % 4]
        rows.append(
            f"{48 + street / 400:.5f},{2 + house / 400:.5f},{20 + person % 60},{answer},{colour},"
            f"{number},{number / 2},{(person % 9) / 20},{site},{drugs}"
        )
    return "\n".join(rows) + "\n"


def circle(num_users: int, steps: tuple[int, ...]) -> str:
    """Edges between all users that are so many places apart on a circle."""
    rows = [f"{user},{(user + step) % num_users}" for user in range(num_users) for step in steps]
    return "\n".join(["u,v", *rows]) + "\n"


def uneven() -> str:
    """A connected graph with hubs, and a triangle apart from it."""
    rows = [f"{user},{user // 3}" for user in range(1, 80)]
    rows += [f"{user},{user * user % 79}" for user in range(5, 79, 2)]
    return "\n".join(["u,v", *rows, "80,81", "81,82", "82,80"]) + "\n"


def histories() -> str:
    """Who switched on or off when, in 8 periods, and which version they had."""
    rows = ["user,time,value,version"]
    for user in range(200):
        start = 1 + user % 5
        rows.append(f"{user},{start},1,v{user % 3}")
        if user % 4 == 0:
            rows.append(f"{user},{start + 2},0,v{(user + 1) % 3}")
    return "\n".join(rows) + "\n"


FILES = {
    "survey.csv": survey,
    "friends.csv": lambda: circle(NUM_PEOPLE, (1, 7, 40, 93, 133)),
    "ring.csv": lambda: circle(60, (1, 6, 17)),
    "even-ring.csv": lambda: circle(40, (1,)),
    "peers.csv": lambda: circle(12, (1, 2, 5)),
    "uneven.csv": uneven,
    "histories.csv": histories,
    "peer-answers.csv": lambda: "answer\n" + "yes\nno\nno\n" * 4,
    "groups.csv": lambda: (
        "group,member\n" + "".join(f"{person // 20},{person}\n" for person in range(NUM_PEOPLE))
    ),
    "domain.txt": lambda: "red\ngreen\nblue\n",
    "domains.json": lambda: json.dumps(
        {"answer": ["yes", "no"], "colour": ["red", "green", "blue", "black"]}
    ),
    "seen.json": lambda: json.dumps(
        {"colour": ["red", "green", "blue"], "site": ["a.org", "b.org"]}
    ),
    "channel.csv": lambda: (
        "answer,yes,no,skipped\nyes,0.70,0.20,0.10\nno,0.20,0.70,0.10\nno answer,0.25,0.25,0.50\n"
    ),
    "schedule.csv": lambda: (
        "epsilon0,num_users,rounds,randomizer,k,epsilon,delta\n1,10000,5,,,,\n,,1,,,0.1,1e-9\n"
    ),
    "prior.json": lambda: json.dumps({"yes": 0.3, "no": 0.7}),
    "colours.json": lambda: json.dumps({"red": "1/2", "green": "1/3", "blue": "1/6"}),
    "some.json": lambda: json.dumps(
        {"prior": {"yes": 0.5, "no": 0.5}, "known": {"yes": 20, "no": 79}}
    ),
    "broken.csv": lambda: "answer,number\nyes,0.5\nmaybe,2.5\n",
}


# Prio3Histogram of 12 buckets, in batches of at least 10,000.
DAP_TASK = bytes.fromhex(
    "06737572766579000968747470733a2f2f61000968747470733a2f2f620000000000000e100000000000002710"
    "020000000000040008" "0000000c00000004" "0000"
)  # fmt: skip


def write_inputs(folder: Path) -> None:
    """Write all files into a folder."""
    for name, content in FILES.items():
        (folder / name).write_text(content(), encoding="utf-8")
    budget(folder / "budget.json")
    (folder / "dap.bin").write_bytes(DAP_TASK)
