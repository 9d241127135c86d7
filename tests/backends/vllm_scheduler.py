"""Runs where vLLM is: how many tokens its scheduler computes for a video of 32 frames with 3 questions.

`vllm_scheduler.py MODEL BATCH ENCODER_CACHE` drives vLLM's `AsyncScheduler` without a model, with two batches
under way as on a GPU, and prints the scheduled tokens of a video.
"""

import sys
from collections import deque

import torch
from vllm import SamplingParams
from vllm.engine.arg_utils import EngineArgs
from vllm.multimodal.inputs import MultiModalFeatureSpec, MultiModalKwargsItem, PlaceholderRange
from vllm.utils.hashing import get_hash_fn_by_name
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

FRAMES, FRAME, QUESTIONS, TAIL, BLOCK, BLOCKS = 32, 112, 3, 116, 16, 60_000
VIDEOS = 96


def scheduler_of(model, batch, encoder_cache):
    arguments = EngineArgs(
        model=model,
        max_model_len=8192,
        max_num_batched_tokens=batch,
        max_num_seqs=256,
        block_size=BLOCK,
        enable_prefix_caching=True,
        limit_mm_per_prompt={"image": FRAMES, "video": 0},
    )
    config = arguments.create_engine_config()
    config.scheduler_config.async_scheduling = True
    config.scheduler_config.encoder_cache_size = encoder_cache
    config.cache_config.num_gpu_blocks = BLOCKS
    spec = FullAttentionSpec(block_size=BLOCK, num_kv_heads=8, head_size=128, dtype=torch.bfloat16)
    cache = KVCacheConfig(BLOCKS, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)])
    return AsyncScheduler(
        vllm_config=config,
        kv_cache_config=cache,
        structured_output_manager=StructuredOutputManager(config),
        block_size=BLOCK,
        hash_block_size=BLOCK,
        log_stats=False,
    )


def request_of(video, question, hasher):
    ids, features = [1, 10, 11], []
    for frame in range(FRAMES):
        ids.append(3)
        name = f"{video}.{frame}"
        place = PlaceholderRange(offset=len(ids), length=FRAME)
        features.append(
            MultiModalFeatureSpec(
                data=MultiModalKwargsItem.dummy(), modality="image", identifier=name, mm_position=place, mm_hash=name
            )
        )
        ids += [5] * FRAME + [4]
    ids += [1000 + QUESTIONS * video + question] + [50] * TAIL
    return Request(
        request_id=f"{video}/{question}",
        prompt_token_ids=ids,
        sampling_params=SamplingParams(max_tokens=1, temperature=0),
        pooling_params=None,
        mm_features=features,
        block_hasher=hasher,
    )


def finished(scheduler, step, requests):
    """Tell the scheduler that a step was computed; return the requests that are answered."""
    computed = {new.req_id: new.num_computed_tokens for new in step.scheduled_new_reqs}
    going_on = step.scheduled_cached_reqs
    computed.update(zip(going_on.req_ids, going_on.num_computed_tokens, strict=True))
    names = list(step.num_scheduled_tokens)
    whole = [computed[n] + step.num_scheduled_tokens[n] >= requests[n].num_prompt_tokens for n in names]
    output = ModelRunnerOutput(
        req_ids=names,
        req_id_to_index={name: at for at, name in enumerate(names)},
        sampled_token_ids=[[7] if one else [] for one in whole],
    )
    answers = scheduler.update_from_output(step, output)
    return [one.request_id for out in answers.values() for one in out.outputs if one.finish_reason is not None]


def tokens_of_a_video(scheduler, at_once=48):
    hash_of = get_hash_fn_by_name("sha256")
    init_none_hash(hash_of)
    hasher = get_request_block_hasher(BLOCK, hash_of)
    requests, left, steps, tokens, following = {}, {}, deque(), 0, 0
    while following < VIDEOS or requests:
        while following < VIDEOS and len(left) < at_once:
            for question in range(QUESTIONS):
                request = request_of(following, question, hasher)
                requests[request.request_id] = request
                scheduler.add_request(request)
            left[following] = QUESTIONS
            following += 1
        step = scheduler.schedule()
        if step.total_num_scheduled_tokens:
            tokens += step.total_num_scheduled_tokens
            steps.append(step)
            if len(steps) < 2:
                continue
        for name in finished(scheduler, steps.popleft(), requests):
            video = int(name.partition("/")[0])
            del requests[name]
            left[video] -= 1
            if not left[video]:
                del left[video]
    return tokens / VIDEOS


if __name__ == "__main__":
    model, batch, encoder_cache = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print(tokens_of_a_video(scheduler_of(model, batch, encoder_cache)))
