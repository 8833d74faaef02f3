#!/usr/bin/env python3
"""Makes mistakes on the simulated node and reads what it says about them.

usage: test_messages.py PROGRAM LIBRARY_DIR
"""

import os
import signal
import subprocess
import sys
import unittest

PROGRAM, LIBRARY_DIR = sys.argv[1:3]


def make(mistake, **environment):
    return subprocess.run(
        [PROGRAM, mistake],
        env={**os.environ, "LD_LIBRARY_PATH": LIBRARY_DIR, "SIM_NODE": "h200x8", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


class Messages(unittest.TestCase):
    def check(self, mistake, answer, *sentences, **environment):
        run = make(mistake, **environment)
        self.assertEqual(run.stdout.strip(), str(answer), run.stderr)
        for sentence in sentences:
            self.assertIn(sentence, run.stderr)
        return run

    def test_null_pointer(self):
        self.check("null", 700, "kernel", "write_one", "GPU 0", "writes 4 bytes at 0x0",
                   "it is a null pointer")

    def test_wild_pointer(self):
        self.check("wild", 700, "0x123456789000", "no GPU owns it")

    def test_memory_of_another_gpu(self):
        self.check("other-gpu", 700, "GPU 1 owns it: 64 MiB from cudaMalloc, at offset 400",
                   "GPU 0 has no peer access to GPU 1",
                   "cudaDeviceEnablePeerAccess(1, 0) was not called with GPU 0 current")

    def test_memory_of_an_unreachable_gpu(self):
        self.check("other-gpu", 700, "GPU 0 cannot reach the memory of GPU 1 on this node",
                   SIM_NODE="pcie2")

    def test_pool_memory_of_another_gpu(self):
        self.check("other-pool", 700, "GPU 1 owns it: 64 MiB from a memory pool",
                   "cudaMemPoolSetAccess was not called")

    def test_pageable_memory(self):
        self.check("pageable", 700, "a GPU reaches host memory only when it is pinned")

    def test_freed_memory(self):
        self.check("freed", 700, "64 MiB, freed by cudaFree")

    def test_freed_pinned_memory(self):
        self.check("freed-pinned", 700, "it was pinned host memory", "has been freed")

    def test_freed_pool_memory_is_a_warning_only(self):
        self.check("freed-pool", 0, "warning", "pool memory that is not allocated",
                   "freed by cudaFreeAsync")

    def test_pool_memory_that_is_freed_behind_its_use_is_no_mistake(self):
        self.assertEqual(self.check("used-then-freed-pool", 0).stderr, "")

    def test_write_behind_an_allocation_is_a_warning_only(self):
        self.check("behind", 0, "warning", "4 bytes past the end of an allocation of 4 KiB",
                   "a real GPU does not notice")

    def test_host_reads_device_memory(self):
        run = make("host-read")
        self.assertEqual(run.returncode, -signal.SIGSEGV)
        self.assertIn("the host program touched the device address", run.stderr)
        self.assertIn("GPU 1 owns it: 4 KiB from cudaMalloc, at offset 0", run.stderr)

    def test_unknown_instruction(self):
        run = make("instruction")
        self.assertNotEqual(run.stdout.strip(), "0")
        self.assertIn("load_matrix", run.stderr)
        self.assertIn("ldmatrix", run.stderr)

    def test_kernel_without_end(self):
        run = make("endless", SIM_KERNEL_BUDGET="10000000")
        self.assertEqual(run.returncode, -signal.SIGABRT)
        self.assertIn("wait_for", run.stderr)
        self.assertIn("does not end", run.stderr)

    def test_call_that_is_not_simulated_is_named_once(self):
        run = self.check("not-simulated", 801)
        self.assertEqual(run.stderr.count("cudaMallocArray is not simulated"), 1)

    def test_unknown_node(self):
        run = make("nothing", SIM_NODE="h200x9")
        self.assertEqual(run.returncode, 1)
        self.assertIn('there is no node "h200x9"', run.stderr)
        self.assertIn("h200x8", run.stderr)

    def test_what_was_never_freed(self):
        self.check("leaks", 0, "1 x cudaMalloc on GPU 1, 4 KiB",
                   "1 x cudaMallocAsync on GPU 0, 1 MiB", "1 x pinned memory, 3 MiB",
                   "1 streams, 0 events", SIM_LEAKS="1")
        self.assertEqual(self.check("leaks", 0).stderr, "")

    def test_right_programs_are_not_talked_to(self):
        run = self.check("nothing", 0)
        self.assertEqual(run.stderr, "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
