"""The command lines of the net, by capability; those that end with ``--json`` print one object.

A call is a line, or several with ``&&`` between them, which run one after the other in one folder.
"""

ACCOUNT = [
    "--epsilon0 1 --num-users 100 --delta 1e-6",
    "--epsilon0 1 --num-users 10000 --delta 1e-6",
    "--epsilon0 4 --num-users 1000000 --delta 1e-8",
    "--epsilon0 0.1 --num-users 1000000000 --delta 1e-12",
    "--epsilon0 1 --num-users 10000 --epsilon 0.05",
    "--epsilon0 3 --num-users 1000 --epsilon 0.5 --randomizer k-rr --k 16",
    "--epsilon0 1 --num-users 10000 --delta 1e-6 --randomizer k-rr --k 2",
    "--epsilon0 3 --num-users 1000 --delta 1e-6 --randomizer symmetric-unary",
    "--epsilon0 2 --num-users 5000 --delta 1e-6 --randomizer optimized-unary",
    "--epsilon0 2 --num-users 5000 --delta 1e-6 --randomizer subset-selection --k 12",
    "--epsilon0 2 --num-users 5000 --delta 1e-6 --randomizer hadamard-response --k 12",
    "--epsilon0 2 --num-users 5000 --delta 1e-6 --randomizer piecewise",
    "--epsilon0 2 --num-users 5000 --delta 1e-6 --randomizer privunit --dimension 5",
    "--channel channel.csv --num-users 1000 --delta 1e-6",
    "--epsilon0 1 --num-users 10000 --delta 1e-6 --honest-fraction 0.8",
    "--epsilon0 1 --num-users 10000 --delta 1e-6 --method feldman-2021-numerical",
    "--epsilon0 0.4 --num-users 10000 --delta 1e-6 --method erlingsson-small",
    "--epsilon0 1 --num-users 10000 --delta 1e-6 --method blanket-bennett",
]
COMPOSE = [
    "--epsilon0 1 --num-users 10000 --delta 1e-6 --rounds 30",
    "--epsilon0 2 --num-users 100000 --delta 1e-8 --rounds 365 --randomizer k-rr --k 2",
    "--schedule schedule.csv --delta 1e-6",
    "--schedule schedule.csv --epsilon 0.3",
]
SUBSAMPLE = [
    "--epsilon0 1 --num-users 1000000 --delta 1e-6 --sampled 10000",
    "--epsilon0 1 --num-users 10000 --delta 1e-6 --participation 0.1",
    "--epsilon0 1 --num-users 10000 --delta 1e-6 --participation 0.5 --rounds 10",
]
CERTIFY = [
    "--epsilon0 1 --num-users 100 --delta 1e-6",
    "--epsilon0 1 --num-users 10000 --delta 1e-6",
    "--epsilon0 2 --num-users 1000 --delta 1e-6 --randomizer k-rr --k 5",
]
BOUNDS = [
    "--epsilon0 1 --num-users 100 --delta 1e-6",
    "--epsilon0 1 --num-users 10000 --delta 1e-6",
    "--epsilon0 1 --num-users 10000 --epsilon 0.05 --randomizer k-rr --k 4",
    "--epsilon0 0.4 --num-users 100000 --delta 1e-6 --randomizer symmetric-unary",
]
PLAN = [
    "--num-users 1000 --domain yes,no --epsilon 1 --delta 1e-6",
    "--num-users 100000 --domain yes,no,refused --epsilon 0.5 --delta 1e-8",
    "--num-users 100000 --k 1000 --epsilon 1 --delta 1e-8",
    "--num-users 5000 --domain-file domain.txt --epsilon 1 --delta 1e-6"
    " --randomizer hadamard-response",
    "--num-users 20000 --domain yes,no --epsilon 2 --delta 1e-8 --rounds 30 --randomizer k-rr",
    "--num-users 5000 --mean --range 0,1 --epsilon 1 --delta 1e-6",
    "--num-users 5000 --mean --range 0,1 --by side --domain a,b,c --epsilon 1 --delta 1e-6",
    "--num-users 5000 --mean --range -5,5 --epsilon 1 --delta 1e-6 --randomizer duchi",
    "--num-users 5000 --histogram --range 0,1 --bins 16 --epsilon 1 --delta 1e-6",
    "--num-users 5000 --vector x,y --norm 1 --epsilon 1 --delta 1e-6 --randomizer privunit",
    "--num-users 5000 --discover --max-bytes 4 --most 5 --epsilon 1 --delta 1e-6",
    "--num-users 5000 --max-answers 2 --domain a,b,c --epsilon 1 --delta 1e-6"
    " --randomizer sampled:k-rr",
    "--num-users 5000 --max-answers 2 --domain a,b,c --epsilon 1 --delta 1e-6"
    " --randomizer split:subset-selection",
    "--num-users 4000 --mean --range 0,1 --epsilon 1 --delta 1e-7 --dummies shuffler"
    " --no-local-noise --randomizer bit-sums-2",
    "--num-users 5000 --k 16 --epsilon 1 --delta 1e-6 --dummies shuffler --no-local-noise",
    "--num-users 5000 --k 16 --epsilon 1 --delta 1e-6 --dummies users --max-epsilon0 8"
    " --frequency 0.3",
    "--num-users 5000 --k 4 --epsilon 1 --delta 1e-6 --dummies best --max-epsilon0 3",
    "--num-users 5000 --columns answer,colour --pairs all --domain-file domains.json --epsilon 1"
    " --delta 1e-6 --dummies best --max-epsilon0 3",
    "--num-users 50 --k 4 --epsilon 1 --delta 1e-6 --dummies shuffler --max-epsilon0 6"
    " --most-dummies 100 --randomizer k-rr",
    "--weights survey.csv --weight age --domain yes,no --epsilon 1 --delta 1e-6 --randomizer k-rr",
]
CALIBRATE = [
    "--epsilon0 1 --num-users 10000 --epsilon 1 --delta 1e-8",
    "--epsilon0 1 --rounds 30 --epsilon 1 --delta 1e-8",
    "--epsilon0 1 --num-users 10000 --epsilon 0.05 --rounds 1",
    "--epsilon0 1 --num-users 10000 --delta 1e-6 --rounds 2",
    "--num-users 10000 --epsilon 0.5 --delta 1e-6 --rounds 1",
    "--num-users 10000 --epsilon 0.5 --delta 1e-6 --rounds 1 --randomizer k-rr --k 8",
]
RUN = [
    "--column answer --domain yes,no --epsilon 1 --delta 1e-6",
    "--column answer --domain yes,no --epsilon0 2 --delta 1e-6 --confidence 0.9",
    "--column colour --domain-file domain.txt --epsilon0 3 --delta 1e-6 --simultaneous",
    "--column colour --epsilon0 2 --delta 1e-6 --randomizer subset-selection"
    " --post-process norm-sub",
    "--column colour --domain red,green --other --epsilon0 2 --delta 1e-6 --randomizer k-rr"
    " --post-process clip --post-process norm-sub",
    "--column colour --domain red,green,blue --epsilon0 2 --delta 1e-6 --title Colours",
    "--column number --mean --range 0,1 --epsilon0 2 --delta 1e-6",
    "--column number --mean --range 0,1 --by colour --domain red,green,blue,grey"
    " --compare red,blue --epsilon0 4 --delta 1e-6",
    "--column number --mean --range 0,1 --by colour --domain red,green,blue,grey"
    " --compare red,grey --epsilon0 4 --delta 1e-6",
    "--column colour --domain red,green,blue --epsilon0 2 --delta 1e-6 --dishonest 12",
    "--column colour --domain red,green,blue --weight age --epsilon0 2 --delta 1e-6",
    "--column number --mean --range 0,0.5 --clip --epsilon0 2 --delta 1e-6 --randomizer piecewise",
    "--column number --quantiles .5,.9 --range 0,1 --bins 16 --epsilon0 2 --delta 1e-6",
    "--vector x,y --norm 1 --epsilon0 3 --delta 1e-6",
    "--column site --discover --max-bytes 5 --most 3 --bits 16 --epsilon0 12 --delta 1e-6",
    "--column drugs --max-answers 2 --domain a,b,c --epsilon0 3 --delta 1e-6",
    "--column drugs --max-answers 1 --truncate --domain a,b,c --epsilon0 3 --delta 1e-6"
    " --randomizer split:k-rr",
    "--columns answer,colour --pairs all --domain-file domains.json --epsilon0 8 --delta 1e-6"
    " --post-process consistent",
    "--columns colour,site --pairs all --domain-file seen.json --epsilon0 12 --delta 1e-6",
    "--column answer --domain yes,no --epsilon0 2 --delta 1e-6 --save-reports",
]
GROUPED = "--column answer --domain yes,no --epsilon0 2 --delta 1e-6 --shuffler"
RUN_GROUPS = [
    f"{GROUPED} mallows --groups-by lat,lon --metric haversine --radius 900m --alpha 4",
    f"{GROUPED} mallows --groups-by age --radius 2 --alpha 3 --keep colour",
    f"{GROUPED} mallows --groups-by age --group-size 20 --alpha 3 --rank-distance hamming",
    f"{GROUPED} mallows --groups-file groups.csv --alpha 3 --rank-distance cayley",
    f"{GROUPED} mallows --groups-graph friends.csv --hops 1 --alpha 3",
    f"{GROUPED} displacement --groups-by lat,lon --metric haversine --radius 900m --alpha 4",
    f"{GROUPED} displacement --groups-by age --group-size 20 --alpha 4",
]
RUN_NETWORK = [
    f"{GROUPED} network --graph friends.csv --rounds auto",
    f"{GROUPED} network --graph friends.csv --rounds 5 --protocol single",
    f"{GROUPED} network --graph friends.csv --rounds 8 --lazy 0.25",
]
NETWORK = [
    "ring.csv --epsilon0 1 --delta 1e-6 --rounds 0",
    "ring.csv --epsilon0 1 --delta 1e-6 --rounds 5",
    "ring.csv --epsilon0 1 --delta 1e-6 --rounds 1,2,10",
    "ring.csv --epsilon0 1 --delta 1e-6 --rounds auto",
    "ring.csv --epsilon0 1 --delta 1e-6 --rounds auto --within 0.1 --protocol single",
    "ring.csv --epsilon0 2 --delta 1e-3 --rounds 12 --randomizer k-rr --k 2 --dishonest 5",
    "even-ring.csv --epsilon0 1 --delta 1e-6 --rounds 20 --lazy 0.5",
    "friends.csv --epsilon0 1 --delta 1e-6 --rounds 10 --positions exact",
    "friends.csv --epsilon0 1 --delta 1e-6 --rounds 10 --positions spectral",
    "uneven.csv --epsilon0 1 --delta 1e-6 --rounds 10 --components largest",
]
LEAKAGE = [
    "--num-users 10 --k 2 --p 1",
    "--num-users 200 --k 2 --p 0.9",
    "--num-users 1000 --k 5 --p 0.6",
    "--num-users 1000000000 --k 10000 --epsilon0 2",
    "--num-users 201 --k 2 --p 0.8 --adversary strong",
    "--num-users 30 --k 3 --p 0.7 --adversary strong",
    "--num-users 20 --p 0.9 --prior prior.json",
    "--num-users 200 --p 0.9 --prior some.json",
    "--num-users 20 --p 0.9 --adversary strong --prior prior.json",
    "--num-users 50 --p 0.7 --prior colours.json",
]
MONITOR_PLAN = [
    "--periods 8 --max-changes 1 --num-users 10000 --epsilon0 1 --delta 1e-6",
    "--periods 64 --max-changes 4 --num-users 1000000 --epsilon0 1 --delta 1e-8",
    "--periods 16 --max-changes 2 --num-users 200000 --epsilon 0.5 --delta 1e-8",
    "--periods 16 --max-changes 2 --num-users 10000 --epsilon0 2 --delta 1e-6"
    " --protocol sampled-change",
    "--periods 8 --max-changes 2 --num-users 10000 --epsilon0 1 --delta 1e-6 --categories a,b",
    "--periods 4 --max-changes 1 --num-users 2000 --epsilon0 6 --delta 1e-6 --dummies shuffler"
    " --max-epsilon0 2",
]
HISTORY = "histories.csv --user user --time time --max-changes 2 --delta 1e-6 --seed 1"
MONITOR_SIMULATE = [
    f"{HISTORY} --value value --epsilon0 2",
    f"{HISTORY} --value value --epsilon0 2 --smoothed --confidence 0.9",
    f"{HISTORY} --value value --epsilon0 2 --protocol sampled-change",
    f"{HISTORY} --value version --categories v0,v1,v2 --epsilon0 3",
    f"{HISTORY} --value value --epsilon0 2 --periods 16",
]
ATTACKED = "survey.csv --column answer --epsilon0 1.5 --seed 1 --trials 2"
ATTACK = [
    f"{ATTACKED} --groups-by age --radius 1 --alpha 4 --attack majority-vote",
    f"{ATTACKED} --groups-by age --group-size 20 --alpha 4 --attack majority-vote"
    " --shuffler displacement",
    f"{ATTACKED} --groups-by lat,lon --metric haversine --radius 900m --alpha 4"
    " --attack gaussian-process",
]
LEARN = [
    f"{ATTACKED} --groups-by age --radius 1 --alpha 4 --attack-radius 3",
    f"{ATTACKED} --groups-by age --group-size 20 --alpha 4 --shuffler displacement"
    " --attack-radius 3",
]
REFUSED = [
    "account --epsilon0 1 --num-users 10 --delta 2 --json",
    "account --epsilon0 -1 --num-users 10 --delta 1e-6 --json",
    "account --epsilon0 nan --num-users 10 --delta 1e-6 --json",
    "account --epsilon0 1 --num-users 0 --delta 1e-6 --json",
    "account --epsilon0 1 --num-users 10 --json",
    "account --epsilon0 1 --num-users 10 --delta 1e-6 --epsilon 1 --json",
    "account --epsilon0 1 --num-users 10 --delta 1e-6 --randomizer k-rr --json",
    "account --epsilon0 1 --num-users 10 --delta 1e-6 --randomizer nobody --json",
    "account --epsilon0 1 --num-users 10 --delta 1e-6 --method erlingsson-small --json",
    "account --epsilon0 1 --num-users 10 --delta 1e-6 --sampled 20 --json",
    "account --channel broken.csv --num-users 10 --delta 1e-6 --json",
    "bounds --epsilon0 1 --num-users 10 --json",
    "plan --num-users 5 --domain yes,no --epsilon 0.01 --delta 1e-8 --json",
    "plan --num-users 500 --domain yes --epsilon 1 --delta 1e-8 --json",
    "plan --num-users 500 --mean --epsilon 1 --delta 1e-8 --json",
    "run survey.csv --column nothing --epsilon 1 --delta 1e-6 --out o --seed 1 --json",
    "run broken.csv --column answer --domain yes,no --epsilon0 1 --delta 1e-6 --out o --json",
    "run broken.csv --column answer --domain yes,no --epsilon0 1 --delta 1e-6 --out o"
    " --show-values --json",
    "run broken.csv --column number --mean --range 0,1 --epsilon0 1 --delta 1e-6 --out o --json",
    "run survey.csv --column answer --domain yes,no --epsilon 1 --delta 1e-6 --out o --alpha 2",
    "run survey.csv --column answer --domain yes,no --epsilon0 1 --delta 1e-6 --out o"
    " --shuffler mallows --groups-by age --radius 1 --json",
    "network account even-ring.csv --epsilon0 1 --delta 1e-6 --rounds 5 --json",
    "network account uneven.csv --epsilon0 1 --delta 1e-6 --rounds 5 --json",
    "network account ring.csv --epsilon0 1 --delta 1e-6 --rounds -1 --json",
    "leakage --num-users 10 --k 2 --p 0.2 --json",
    "monitor plan --periods 8 --max-changes 9 --num-users 100 --epsilon0 1 --delta 1e-6 --json",
    "monitor simulate histories.csv --user user --time time --value version --max-changes 2"
    " --epsilon0 2 --delta 1e-6 --out o --json",
    "attack survey.csv --column answer --groups-by age --radius 1 --alpha -4 --epsilon0 1.5 --json",
    "nothing",
]
MORE_RUNS = [
    ("ledger", "run survey.csv --column answer --domain yes,no --epsilon0 1 --delta 1e-6 --seed 1"
     " --out results --ledger budget.json --json && run survey.csv --column answer --domain yes,no"
     " --epsilon0 1 --delta 1e-6 --seed 2 --out more --ledger budget.json --json"),
    ("run", "plan --num-users 300 --domain yes,no --epsilon 1 --delta 1e-6 --out plan.json --json"
     " && run survey.csv --column answer --plan plan.json --save-reports --seed 1 --out results"
     " --json && estimate results/reports.parquet --plan plan.json --out again --json"),
    ("run", "plan --num-users 300 --domain yes,no --epsilon 1 --delta 1e-6 --dummies shuffler"
     " --max-epsilon0 3 --out plan.json --json && run survey.csv --column answer --plan plan.json"
     " --save-reports --seed 1 --out results --json && estimate results/reports.parquet --plan"
     " plan.json --out again --json"),
    ("run", "plan --num-users 300 --domain yes,no --epsilon 1 --delta 1e-6 --dummies shuffler"
     " --no-local-noise --out plan.json --json && run survey.csv --column answer --plan plan.json"
     " --seed 1 --out results --json && explain plan.json --as label --collected-by devices"),
    # From a table: so loud that a report is its value, but for a chance of 1e-15.
    ("run", "plan --num-users 300 --domain yes,no --epsilon 40 --delta 1e-6 --out plan.json --json"
     " && run survey.csv --column answer --plan plan.json --save-reports --out results --json"
     " && estimate results/reports.parquet --plan plan.json --out again --json && explain results"
     " --as notice && explain plan.json --as label --collected-by devices"),
    *(("explain", "run survey.csv --column answer --domain yes,no --epsilon0 2 --delta 1e-6 --seed"
       f" 1 --title Answers --out results --json && explain results --as {form}")
      for form in ("notice", "label", "registry")),
    ("network exchange", "network prepare --graph ring.csv --domain yes,no --epsilon0 2"
     " --rounds 5 --delta 1e-3 --out prepared --json"),
    ("network exchange", "network prepare --graph ring.csv --mean --range 0,1 --epsilon0 2"
     " --rounds 5 --protocol single --out prepared --json"),
    ("demo", "demo --seed 1 --out demo"),
    ("deploy", "task check --dap dap.bin --epsilon0 4 --delta 1e-8 --json"),
]  # fmt: skip


def command_calls() -> list[tuple[str, str]]:
    """Return capability and command line of every call, without the program's name."""
    found = [*MORE_RUNS, *(("refused", line) for line in REFUSED)]
    plain = {
        ("account", "account"): ACCOUNT,
        ("compose", "account"): COMPOSE,
        ("subsample", "account"): SUBSAMPLE,
        ("certify", "account --certify"): CERTIFY,
        ("bounds", "bounds"): BOUNDS,
        ("plan", "plan"): PLAN,
        ("calibrate", "plan"): CALIBRATE,
        ("network account", "network account"): NETWORK,
        ("leakage", "leakage"): LEAKAGE,
        ("monitor plan", "monitor plan"): MONITOR_PLAN,
        ("attack", "attack"): ATTACK,
        ("learnability", "learnability"): LEARN,
    }
    for (capability, command), each in plain.items():
        found += [(capability, f"{command} {options} --json") for options in each]
    for capability, each in (("run", RUN), ("groups", RUN_GROUPS), ("network run", RUN_NETWORK)):
        for options in each:
            found.append((capability, f"run survey.csv {options} --seed 1 --out results --json"))
    for options in MONITOR_SIMULATE:
        found.append(("monitor simulate", f"monitor simulate {options} --out results --json"))
    return found
