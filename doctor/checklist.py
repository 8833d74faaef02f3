"""The chapter's checklist, judged by what the doctor has measured: signal, figure, cause, remedy.

Each line gets one of four verdicts: "fine"; "mind", where this machine punishes a mistake that programs make; "fault",
where the machine itself is not what it should be; "unknown", where it cannot tell.
"""

from dataclasses import dataclass

FINE, MIND, FAULT, UNKNOWN = "fine", "mind", "fault", "unknown"

# GB/s a lane and direction after line coding, by generation of PCIe.
LANE_RATE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
LEAST_OF_LINK = 0.6      # of what the link's width and generation allow; 0.85 to 0.9 is usual
LEAST_OF_BEST_GPU = 0.7  # one GPU's rate beside that of the best
LEAST_GAIN_OF_ACCESS = 1.1
LEAST_OF_BOTH_WAYS = 0.6  # rate of both directions at once, of the sum of both alone; one engine gives 0.5
LEAST_OVERLAP = 0.8
MATTERS = 1.5            # times as slow


@dataclass
class Line:
    name: str
    verdict: str
    signal: str
    figure: str
    cause: str
    remedy: str
    lesson: str


def rate(value):
    """GB/s with three digits."""
    return f"{value:.3g} GB/s" if value < 1000 else f"{value:.0f} GB/s"


def span(values, text):
    """One value, or the range over several GPUs."""
    low, high = min(values), max(values)
    return text(low) if high <= low * 1.02 else f"{text(low).split()[0]} to {text(high)}"


def medians(gpus, name):
    return [gpu[name]["median"] for gpu in gpus]


def times(value):
    return f"{value:.1f} times" if value < 10 else f"{value:.0f} times"


def listed(words):
    words = list(words)
    return ", ".join(words[:4]) + (f" and {len(words) - 4} more" if len(words) > 4 else "")


def pageable(report):
    gpus = report["gpus"]
    gain = max(pinned / slow for pinned, slow in zip(medians(gpus, "h2d_pinned"), medians(gpus, "h2d_pageable")))
    figure = (f"H2D {span(medians(gpus, 'h2d_pageable'), rate)} pageable, {span(medians(gpus, 'h2d_pinned'), rate)} pinned; "
              f"D2H {span(medians(gpus, 'd2h_pageable'), rate)} and {span(medians(gpus, 'd2h_pinned'), rate)}")
    return Line("pinned memory", MIND if gain > MATTERS else FINE,
                "an asynchronous copy takes as long as a synchronous one", figure,
                "host memory is pageable: the driver copies it twice, and the call blocks" if gain > MATTERS
                else "this machine copies pageable memory as fast as pinned memory",
                "cudaMallocHost, or cudaHostRegister, once, for what is copied often" if gain > MATTERS else "", "3")


def arrived(report):
    wrong = [f"GPU {gpu['gpu']}" for gpu in report["gpus"] if not gpu["arrived"]]
    return Line("bytes arrive", FAULT if wrong else FINE, "results are wrong although every call succeeds",
                f"wrong bytes on {listed(wrong)}" if wrong else "every byte that was copied came back right",
                "hardware or driver" if wrong else "", "test the machine: no program can be right on it" if wrong else "", "1")


def peer(report):
    pairs = report["pairs"]
    signal = "a copy between GPUs is far under the link's rate"
    if not pairs:
        return Line("peer access", UNKNOWN, signal, "one GPU: there is no other", "", "", "2")
    name = [f"{pair['from']}->{pair['to']}" for pair in pairs]
    broken = [f"{name[i]}: {pair['fault']}" for i, pair in enumerate(pairs) if pair["fault"]]
    without = span([pair["copy_without_access"]["median"] for pair in pairs if "copy_without_access" in pair] or [0], rate)
    if broken:
        return Line("peer access", FAULT, signal, listed(broken),
                    "the driver offers peer access that does not deliver: an IOMMU, PCIe access control, or a bridge in between",
                    "switch off ACS or the IOMMU for these GPUs; until then leave peer access off", "2")
    missing = [name[i] for i, pair in enumerate(pairs) if not pair["possible"]]
    if missing:
        return Line("peer access", MIND, signal, f"no peer access {listed(missing)}: copies run at {without}",
                    "these GPUs have no way to each other: copies go through the host",
                    "ask cudaDeviceCanAccessPeer, and have another way ready", "2")
    with_access = [pair["copy_with_access"]["median"] for pair in pairs]
    useless = [name[i] for i, pair in enumerate(pairs)
               if pair["copy_with_access"]["median"] < LEAST_GAIN_OF_ACCESS * pair["copy_without_access"]["median"]]
    figure = f"{span(with_access, rate)} with peer access, {without} without"
    if useless:
        return Line("peer access", FAULT, signal, f"{figure}; no faster: {listed(useless)}",
                    "peer access is on, and copies still take the way through the host",
                    "look at `nvidia-smi topo -m`: these GPUs should share a switch or an NVLink", "2")
    return Line("peer access", MIND, signal, figure, "off by default, and opened for one direction at a time",
                "cudaDeviceEnablePeerAccess, in each direction that kernels use", "2")


def link_of(gpu):
    """(generation, width, largest generation, largest width), as far as the system tells."""
    link = gpu.get("link") or {}
    found = [link.get(name) for name in ("generation", "width", "max_generation", "max_width")]
    return found if all(found) else None


def link(report):
    gpus = report["gpus"]
    rates = medians(gpus, "h2d_pinned")
    signal = "copies from pinned memory are slower than the link's data sheet"
    reduced, slow = [], []
    for gpu, here in zip(gpus, rates):
        known = link_of(gpu)
        if known:
            generation, width, most_generation, most_width = known
            if generation < most_generation or width < most_width:
                reduced.append(f"GPU {gpu['gpu']} runs at gen{generation} x{width} of gen{most_generation} x{most_width}")
            elif here < LEAST_OF_LINK * LANE_RATE.get(generation, 0) * width:
                slow.append(f"GPU {gpu['gpu']}: {rate(here)} on gen{generation} x{width}")
        if here < LEAST_OF_BEST_GPU * max(rates):
            slow.append(f"GPU {gpu['gpu']}: {rate(here)}, others {rate(max(rates))}")
    if reduced or slow:
        return Line("PCIe link", FAULT, signal, listed(reduced + slow),
                    "the slot or a riser gives fewer lanes or an older generation, or the link is shared",
                    "another slot, the BIOS's lane settings; compare with `nvidia-smi -q -d PERFORMANCE,PCIE`", "3")
    known = [link_of(gpu) for gpu in gpus if link_of(gpu)]
    text = f" on gen{known[0][0]} x{known[0][1]}" if known else "; the system does not tell the link's width"
    return Line("PCIe link", FINE if known or len(gpus) > 1 else UNKNOWN, signal, span(rates, rate) + text, "", "", "3")


def numa(report):
    nodes = report.get("numa_nodes_of_process")
    signal = "copies are slower on some days than on others, or for some GPUs"
    places = {gpu["gpu"]: gpu.get("numa_node") for gpu in report["gpus"]}
    if not nodes or any(place is None or place < 0 for place in places.values()):
        return Line("NUMA node", UNKNOWN, signal, "the system does not tell at which processor the GPUs are", "", "", "3")
    far = [f"GPU {gpu} at node {place}" for gpu, place in places.items() if place not in nodes]
    here = "this process runs at node " + ", ".join(map(str, sorted(nodes)))
    if far:
        return Line("NUMA node", FAULT, signal, f"{here}; {listed(far)}",
                    "host memory is at one processor, the GPU at the other: every byte crosses between them",
                    "numactl --cpunodebind=N --membind=N, a process for each node", "3")
    return Line("NUMA node", FINE, signal, f"{here}, and so are its GPUs", "", "", "3")


def overlap_of(gpu):
    """The share of the shorter of a copy and a kernel that is hidden behind the other."""
    hidden = gpu["copy_ms"] + gpu["kernel_ms"] - gpu["copy_and_kernel_ms"]
    return hidden / min(gpu["copy_ms"], gpu["kernel_ms"])


def overlap(report):
    gpus = report["gpus"]
    least = min(map(overlap_of, gpus))
    share = min(both / (up + down) for both, up, down in
                zip(medians(gpus, "both_ways"), medians(gpus, "h2d_pinned"), medians(gpus, "d2h_pinned")))
    figure = (f"{100 * least:.0f} % of a copy hidden behind a kernel; "
              f"H2D and D2H at once {span(medians(gpus, 'both_ways'), rate)}, {100 * share:.0f} % of both alone")
    signal = "copies and kernels one after the other in the profiler"
    if least < LEAST_OVERLAP:
        return Line("overlap", FAULT, signal, figure, "this GPU copies only while it does not compute, or somebody else uses it",
                    "look at `nvidia-smi` for other programs; CUDA_LAUNCH_BLOCKING must not be set", "6")
    if share < LEAST_OF_BOTH_WAYS:
        return Line("overlap", MIND, signal, figure, "one copy engine: uploads and downloads take turns",
                    "overlap copies with kernels; the two directions cannot overlap here", "6")
    return Line("overlap", FINE, signal, figure, "", "", "6")


def pool(report):
    gpus = report["gpus"]
    trimmed, kept = medians(gpus, "pool_trimmed_us"), medians(gpus, "pool_kept_us")
    slower = max(slow / fast for slow, fast in zip(trimmed, kept))
    return Line("memory pool", MIND if slower > MATTERS else FINE, "the pool is no faster when each step ends in a wait",
                f"64 MiB and a wait: {span(trimmed, microseconds)} with release threshold 0, {span(kept, microseconds)} with a high one",
                "the pool gives everything back at each wait", "raise cudaMemPoolAttrReleaseThreshold", "5")


def microseconds(value):
    return f"{value:.3g} us"


def allocation(report):
    gpus = report["gpus"]
    plain, kept = medians(gpus, "malloc_and_free_us"), medians(gpus, "pool_kept_us")
    return Line("allocation", MIND if max(plain) > MATTERS * min(kept) else FINE, "each iteration costs some 100 us beside its kernel",
                f"64 MiB: {span(plain, microseconds)} by cudaMalloc and cudaFree, {span(kept, microseconds)} from a pool, wait included",
                "allocation in the loop; cudaFree waits for the GPU as well", "cudaMallocAsync and cudaFreeAsync in the stream that uses the memory", "5")


def zero_copy(report):
    gpus = report["gpus"]
    host, inside = medians(gpus, "zero_copy_read"), medians(gpus, "inside_kernel")
    slower = max(fast / slow for fast, slow in zip(inside, host))
    return Line("zero-copy", MIND if slower > MATTERS else FINE, "a kernel runs at the link's rate",
                f"kernels read host memory at {span(host, rate)}, copy inside the GPU at {span(inside, rate)}: {times(slower)}",
                "data that is used again and again stays in host memory",
                "copy it once; zero-copy for what is read once or rarely", "4")


CHECKS = [arrived, pageable, link, numa, overlap, peer, zero_copy, allocation, pool]


def checklist(report):
    """The lines of the checklist for a report."""
    return [check(report) for check in CHECKS]
