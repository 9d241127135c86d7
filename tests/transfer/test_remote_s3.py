"""Uploads to and downloads from S3: moto's server on this machine, asked through s3fs as a bucket would be."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchcheck.errors import DamagedFileError, InputError, RunError
from benchcheck.transfer.far.incoming import download
from benchcheck.transfer.far.ledger import LEDGER
from benchcheck.transfer.far.remote import upload
from benchcheck.transfer.far.sums import MANIFEST
from studies import Run

pytest.importorskip("s3fs", reason="the extra s3 is not installed")
moto_server = pytest.importorskip("moto.server", reason="moto is not installed")

# botocore and moto call what Python has deprecated; a pool of connections is closed by the collector alone.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:botocore"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:moto"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

# moto has no route for a key with a newline; the folders' tests have one.
FILES = {
    "frames/frames_000.tar": bytes(range(256)) * 5000,
    "frames/empty": b"",
    'it\'s "quoted" and spaced': b"q",
    "प्रश्न/उत्तर.json": b"{}",
    "100%+a b&c=d#e?f": b"s",
}
SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    running = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def bucket(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    s3 = client()
    s3.create_bucket(Bucket="bench")
    yield "s3://bench"
    for entry in s3.list_objects_v2(Bucket="bench").get("Contents", []):
        s3.delete_object(Bucket="bench", Key=entry["Key"])
    for entry in s3.list_multipart_uploads(Bucket="bench").get("Uploads", []):
        s3.abort_multipart_upload(Bucket="bench", Key=entry["Key"], UploadId=entry["UploadId"])


def client():  # type: ignore[no-untyped-def]  # boto3 makes its classes when it runs
    import boto3

    return boto3.client("s3")


def keys() -> list[str]:
    return sorted(entry["Key"] for entry in client().list_objects_v2(Bucket="bench").get("Contents", []))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / name).write_bytes(content)
    return tmp_path / "source"


def held(folder: Path) -> dict[str, bytes]:
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: content for name, content in files.items() if name not in (LEDGER, MANIFEST)}


@pytest.mark.parametrize("folder", ["", "/frames of a study/v1"])
def test_a_folder_goes_to_a_bucket_and_comes_back(bucket: str, source: Path, tmp_path: Path, folder: str) -> None:
    place = bucket + folder
    assert upload(source, place).files == len(FILES)
    assert len(keys()) == len(FILES) + 1
    assert download(place, tmp_path / "back").files == len(FILES)
    assert held(tmp_path / "back") == FILES
    again = upload(source, place)
    assert (again.files, again.same) == (0, len(FILES))
    one = download(f"{place}/frames/frames_000.tar", tmp_path / "one") if not folder else None
    assert one is None or one.files == 1


def test_one_file_of_a_folder_is_verified_by_its_manifest(bucket: str, source: Path, tmp_path: Path) -> None:
    upload(source / "frames" / "frames_000.tar", f"{bucket}/packs")
    download(f"{bucket}/packs/frames_000.tar", tmp_path / "one")
    assert held(tmp_path / "one") == {"frames_000.tar": FILES["frames/frames_000.tar"]}
    client().put_object(Bucket="bench", Key="packs/frames_000.tar", Body=b"\0" * len(FILES["frames/frames_000.tar"]))
    with pytest.raises(DamagedFileError, match=r"1 of 1 files are not what they should be.*another content"):
        download(f"{bucket}/packs/frames_000.tar", tmp_path / "other")


def test_what_was_sent_before_a_kill_is_known_by_its_etag(
    bucket: str, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(source, bucket)
    client().delete_object(Bucket="bench", Key=MANIFEST)
    monkeypatch.setattr("benchcheck.transfer.far.stores.UrlStore.digest", lambda *_: pytest.fail("read again"))
    assert upload(source, bucket).same == len(FILES)
    client().delete_object(Bucket="bench", Key="frames/empty")
    assert upload(source, bucket).files == 1


def test_a_large_file_goes_in_parts(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchcheck.transfer.far.stores._PART", 5 << 20)
    (tmp_path / "big").mkdir()
    content = hashlib.sha256(b"x").digest() * (23 << 15)
    (tmp_path / "big" / "a.tar").write_bytes(content)
    upload(tmp_path / "big", bucket)
    assert client().head_object(Bucket="bench", Key="a.tar")["ETag"].endswith('-5"')
    download(bucket, tmp_path / "back")
    assert held(tmp_path / "back") == {"a.tar": content}


@pytest.mark.long
def test_killed_between_parts_no_half_object_stands_there(bucket: str, tmp_path: Path) -> None:
    (tmp_path / "big").mkdir()
    (tmp_path / "big" / "a.tar").write_bytes(os.urandom(1 << 20) * 100)
    (tmp_path / "big" / "b").write_bytes(b"b")
    code = "import benchcheck.transfer.far.stores as s; s._PART = 5 << 20; from benchcheck.cli import main; main()"
    line = [sys.executable, "-c", code, "upload", str(tmp_path / "big"), bucket, "--workers", "1"]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not client().list_multipart_uploads(Bucket="bench").get("Uploads") and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert "a.tar" not in keys()
    assert MANIFEST not in keys()
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert " sent" in done.stdout
    download(bucket, tmp_path / "back")
    assert held(tmp_path / "back") == held(tmp_path / "big")


def test_what_a_bucket_refuses_is_one_line(
    bucket: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    code, out, err = run("upload", source, "s3://nosuchbucket/x")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "s3://nosuchbucket/x: cannot be written: no such bucket or folder, or the file is gone. Cure: check" in err
    with pytest.raises(InputError, match="nothing is there"):
        download("s3://nosuchbucket/x", tmp_path / "back")
    with pytest.raises(InputError, match="nothing is there"):
        download(f"{bucket}/none", tmp_path / "back")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    code, out, err = run("download", bucket, tmp_path / "back")
    assert (code, err.count("\n")) == (1, 1)
    assert "no login was found. Cure: s3 takes AWS_PROFILE or AWS_ACCESS_KEY_ID" in err


def test_a_bucket_that_does_not_answer_is_one_line(
    bucket: str, source: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    code, out, err = run("upload", source, bucket)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "s3://bench: cannot be listed: no answer (EndpointConnectionError). Cure: check the network" in err
    assert SECRET not in err


@pytest.mark.parametrize(
    ("code", "status", "message"),
    [
        ("AccessDenied", 403, "no permission, or a wrong key. Cure: have it granted"),
        ("InvalidAccessKeyId", 403, "no permission, or a wrong key"),
        ("ExpiredToken", 400, "the login has expired. Cure: log in again (s3 takes AWS_PROFILE"),
        ("QuotaExceeded", 403, "no room is left there (quota or disk). Cure: free space"),
        ("Strange", 418, "OSError: [Errno 5] An error occurred (Strange) when calling the PutObject operation"),
    ],
)
def test_refusals_of_a_bucket(
    bucket: str, source: Path, monkeypatch: pytest.MonkeyPatch, code: str, status: int, message: str
) -> None:
    import botocore.exceptions
    import s3fs
    from s3fs.errors import translate_boto_error

    async def refuse(*_: object, **__: object) -> None:
        answer = {"Error": {"Code": code, "Message": f"{code} for Bearer {SECRET} key={SECRET}"}}
        raise translate_boto_error(
            botocore.exceptions.ClientError(answer | {"ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject")
        )

    monkeypatch.setattr(s3fs.S3FileSystem, "_put_file", refuse)
    with pytest.raises(RunError) as caught:
        upload(source, bucket)
    assert str(caught.value).startswith("s3://bench: cannot be written: ")
    assert message in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
