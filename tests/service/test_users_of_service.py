"""A service that root runs for two accounts: what a job of one finds of the service and the other.

Whatever it tries is tried by a job, as it would be by somebody who may submit.
"""

import os
from http import HTTPStatus

import pytest

from foresail.client.connection import Connection
from foresail.client.service_client import ServiceClient
from foresail.model.errors import InputError
from foresail.service.state_folder import StateFolder
from live_service import ENDS, becomes, live_service
from machine_accounts import ann_and_bob, common_folder  # noqa: F401 - fixtures

_ATTACKS = """#!/bin/sh
cd {state}
for file in foresail.db foresail.db-wal foresail.db-shm store.json lock admin-token snapshot; do
    cat $file
done
ls . attempts logs logs/{bob}
cat logs/{bob}/1.out attempts/1.1.status
echo > logs/{bob}/1.out
echo > attempts/1.1.status
ln -s {state}/foresail.db logs/{ann}/3.out && echo linked
exit 0
"""


def test_two_users_share_a_service_and_get_at_nothing_but_their_own(ann_and_bob, common_folder):  # noqa: F811
    ann, bob = ann_and_bob
    with live_service(
        common_folder, 'cluster = "local(nodes=1,log_bytes=200000)"', accounts=""
    ) as service:
        state = service.state
        with ServiceClient(Connection(str(state / "socket"), "")) as root:
            tokens = [root.create_token(each.name, "user")["secret"] for each in (ann, bob)]
        by_ann, by_bob = map(service.client, tokens)
        with by_ann, by_bob:

            def submitted(client, **job):
                answer = client.post("/v1/jobs", json={"cpus": 1, **job})
                assert answer.status_code == HTTPStatus.CREATED, answer.text
                return answer.json()["jobs"][0]["job_id"]

            first = submitted(by_bob, command="echo secret-of-bob; id -un; pwd")
            assert (first, becomes(by_bob, first, *ENDS)["exit_code"]) == ("1", 0)
            assert by_bob.get("/v1/jobs/1/logs").text == f"secret-of-bob\n{bob.name}\n{bob.home}\n"

            script = _ATTACKS.format(state=state, ann=ann.name, bob=bob.name)
            second = submitted(by_ann, script=script, directory="/")
            assert becomes(by_ann, second, *ENDS)["exit_code"] == 0
            said = by_ann.get(f"/v1/jobs/{second}/logs").text.splitlines()
            assert said[-1] == "linked"
            refused = [each for each in said if "Permission denied" in each]
            assert len(refused) >= 10
            assert [
                each for each in said if each not in refused and "No such file" not in each
            ] == ["linked"]
            assert by_ann.get("/v1/jobs/1/logs").status_code == HTTPStatus.NOT_FOUND

            third = submitted(by_ann, command="echo written", directory="/")
            failed = becomes(by_ann, third, *ENDS)
            assert (failed["state"], failed["exit_code"]) == ("failed", 127)
            answer = by_ann.get(f"/v1/jobs/{third}/logs")
            assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
            assert "is no log" in answer.text

            flood = submitted(by_ann, command="yes | head -c 3000000", directory="/root/unseen")
            assert (
                becomes(by_ann, flood, *ENDS)["state"] == "failed"
            )  # the folder is told of by its user
            flood = submitted(by_ann, command="yes | head -c 3000000")
            assert becomes(by_ann, flood, *ENDS)["log_is_cut"] is True
            assert len(by_ann.get(f"/v1/jobs/{flood}/logs?limit=900000").text) < 201_000
        modes = {each.name: each.stat().st_mode & 0o777 for each in state.iterdir()}
        assert (modes.pop("logs"), modes.pop("attempts")) == (0o711, 0o700)
        del modes["socket"]
        assert set(modes.values()) == {0o600}
        assert state.stat().st_mode & 0o777 == 0o711


def test_root_serves_from_no_folder_that_others_could_replace(ann_and_bob, common_folder):  # noqa: F811
    """Else whoever owns it, or a folder that it is in, writes whose jobs run as root."""
    ann, _ = ann_and_bob
    hers = common_folder / "hers"
    hers.mkdir(mode=0o755)
    os.chown(hers, ann.uid, ann.gid)
    everybodys = common_folder / "everybodys"
    everybodys.mkdir()
    everybodys.chmod(0o777)
    (common_folder / "link").symlink_to(hers)
    for path in (hers, hers / "state", everybodys / "state", common_folder / "link" / "state"):
        with pytest.raises(InputError, match="could replace"):
            StateFolder(path).make()
    assert not list(hers.iterdir())
    StateFolder(common_folder / "state").make()
