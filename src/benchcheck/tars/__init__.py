"""Tar files: written so that the same members give the same bytes, read without trusting a byte of them.

Both stream: a shard of 2 GB is written with its hash in one pass, and nothing is held but one block.
"""

from benchcheck.tars.reading import members_of
from benchcheck.tars.writing import Member, Written, hash_of, tar_bytes, write_tar

__all__ = ["Member", "Written", "hash_of", "members_of", "tar_bytes", "write_tar"]
