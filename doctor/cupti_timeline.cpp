// The timeline of a program on real GPUs, in the form of SIM_TRACE (see sim/node/trace.hpp):
//
//   CUDA_INJECTION64_PATH=build/doctor/libcourse-timeline.so COURSE_TRACE=FILE program
//
// The driver loads this library into the program and calls InitializeInjection. CUPTI reports what
// the GPUs and the runtime did; it is written when the program ends. Nothing in the program
// changes.
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct Entry {
    std::string name;
    const char* category;
    int device; // -1: the host
    std::uint32_t row;
    std::uint64_t begin, end; // ns
};

struct Recorder {
    std::mutex mutex;
    std::vector<Entry> entries;
    std::size_t dropped = 0;
    std::string path;
};

Recorder& recorder() {
    static auto* all = new Recorder; // lives until the very end: CUPTI's thread may still use it
    return *all;
}

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

void complain(const char* what, CUptiResult result) {
    const char* text = nullptr;
    cuptiGetResultString(result, &text);
    std::fprintf(stderr, "timeline: %s: %s\n", what, text ? text : "unknown error of CUPTI");
}

void buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, buffer_bytes));
    *size = *buffer ? buffer_bytes : 0;
    *max_records = 0;
}

bool is_pageable(std::uint8_t memory) {
    return memory == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
}

const char* category_of(const CUpti_ActivityMemcpy5& copy) {
    switch (copy.copyKind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
        return is_pageable(copy.srcKind) ? "H2D pageable" : "H2D";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
        return is_pageable(copy.dstKind) ? "D2H pageable" : "D2H";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
        return "D2D";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
        return "P2P";
    default:
        return "D2D";
    }
}

bool starts_with(std::string_view text, std::string_view begin) {
    return text.substr(0, begin.size()) == begin;
}

/// What the host was doing in a runtime call, as far as a timeline shows it; else nullptr.
const char* category_of(std::string_view call) {
    for (const char* wait :
         {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize"}) {
        if (starts_with(call, wait)) return "wait";
    }
    for (const char* allocation :
         {"cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaHostRegister", "cudaHostUnregister"}) {
        if (starts_with(call, allocation)) return "allocation";
    }
    // A copy that is not asynchronous is waited for.
    if (starts_with(call, "cudaMemcpy") && call.find("Async") == std::string_view::npos)
        return "wait";
    return nullptr;
}

/// "cudaMalloc_v3020" is cudaMalloc.
std::string without_version(const char* call) {
    const std::string_view name(call);
    return std::string(name.substr(0, name.rfind("_v")));
}

std::string size_text(std::uint64_t bytes) {
    return bytes >= (1U << 20) ? std::to_string(bytes >> 20) + " MiB"
                               : std::to_string(bytes) + " bytes";
}

void add_call(const CUpti_ActivityAPI& call) {
    const char* name = nullptr;
    if (cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, call.cbid, &name) != CUPTI_SUCCESS)
        return;
    const std::string short_name = without_version(name);
    const char* category = category_of(short_name);
    if (category)
        recorder().entries.push_back(
            {short_name, category, -1, call.threadId, call.start, call.end});
}

void add(const CUpti_Activity& record) {
    auto& entries = recorder().entries;
    switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy5&>(record);
        const char* category = category_of(copy);
        entries.push_back({std::string(category) + " " + size_text(copy.bytes), category,
                           static_cast<int>(copy.deviceId), copy.streamId, copy.start, copy.end});
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpyPtoP4&>(record);
        entries.push_back(
            {"to GPU " + std::to_string(copy.dstDeviceId) + " " + size_text(copy.bytes), "P2P",
             static_cast<int>(copy.deviceId), copy.streamId, copy.start, copy.end});
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& fill = reinterpret_cast<const CUpti_ActivityMemset4&>(record);
        entries.push_back({"fill " + size_text(fill.bytes), "fill", static_cast<int>(fill.deviceId),
                           fill.streamId, fill.start, fill.end});
        break;
    }
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel9&>(record);
        entries.push_back({kernel.name ? kernel.name : "kernel", "kernel",
                           static_cast<int>(kernel.deviceId), kernel.streamId, kernel.start,
                           kernel.end});
        break;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
        add_call(reinterpret_cast<const CUpti_ActivityAPI&>(record));
        break;
    default:
        break;
    }
}

void buffer_completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                      std::size_t valid_bytes) {
    const std::lock_guard lock(recorder().mutex);
    CUpti_Activity* record = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS)
        add(*record);
    std::size_t dropped = 0;
    if (cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS)
        recorder().dropped += dropped;
    std::free(buffer);
}

std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        if (static_cast<unsigned char>(c) >= 0x20) result += c;
    }
    return result + '"';
}

/// How many GPUs the program could use; 0 when the driver does not tell.
int visible_gpus() {
    void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD); // the one that loaded us
    auto* get_count =
        driver ? reinterpret_cast<CUresult (*)(int*)>(dlsym(driver, "cuDeviceGetCount")) : nullptr;
    int count = 0;
    return get_count && get_count(&count) == CUDA_SUCCESS ? count : 0;
}

void write_process_name(std::FILE* file, int device) {
    const std::string owner = device < 0 ? "host" : "GPU " + std::to_string(device);
    std::fprintf(file,
                 "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %d, \"args\": {\"name\": "
                 "%s}},\n",
                 device + 1, quoted(owner).c_str());
}

void write_names(std::FILE* file, const std::vector<Entry>& entries) {
    for (int device = -1; device < visible_gpus(); ++device)
        write_process_name(file, device);
    std::set<std::pair<int, std::uint32_t>> named;
    for (const Entry& entry : entries) {
        if (!named.insert({entry.device, entry.row}).second) continue;
        const std::string row =
            (entry.device < 0 ? "thread " : "stream ") + std::to_string(entry.row);
        std::fprintf(file,
                     "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": %d, \"tid\": %u, "
                     "\"args\": {\"name\": %s}},\n",
                     entry.device + 1, entry.row, quoted(row).c_str());
    }
}

void write_trace() {
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    const std::lock_guard lock(recorder().mutex);
    std::FILE* file = std::fopen(recorder().path.c_str(), "w");
    if (!file) {
        std::fprintf(stderr, "timeline: %s cannot be written\n", recorder().path.c_str());
        return;
    }
    const auto& entries = recorder().entries;
    std::uint64_t first = entries.empty() ? 0 : entries.front().begin;
    for (const Entry& entry : entries)
        first = entry.begin < first ? entry.begin : first;
    std::fprintf(file, "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n");
    write_names(file, entries);
    const char* separator = "";
    for (const Entry& entry : entries) {
        std::fprintf(file,
                     "%s{\"ph\": \"X\", \"name\": %s, \"cat\": \"%s\", \"pid\": %d, \"tid\": %u, "
                     "\"ts\": %.3f, \"dur\": %.3f}",
                     separator, quoted(entry.name).c_str(), entry.category, entry.device + 1,
                     entry.row, static_cast<double>(entry.begin - first) / 1e3,
                     static_cast<double>(entry.end - entry.begin) / 1e3);
        separator = ",\n";
    }
    std::fprintf(file, "\n]}\n");
    std::fclose(file);
    if (recorder().dropped > 0)
        std::fprintf(stderr, "timeline: %zu records were dropped\n", recorder().dropped);
}

bool succeeded(const char* what, CUptiResult result) {
    if (result != CUPTI_SUCCESS) complain(what, result);
    return result == CUPTI_SUCCESS;
}

} // namespace

/// Called by the driver before the first call of the program. 1: all is well.
extern "C" int InitializeInjection() {
    const char* path = std::getenv("COURSE_TRACE");
    if (!path || !*path) {
        std::fprintf(stderr, "timeline: COURSE_TRACE names no file\n");
        return 1; // the program runs without
    }
    recorder().path = path;
    bool recording = succeeded("recording cannot start",
                               cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed));
    for (const CUpti_ActivityKind kind :
         {CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET,
          CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME}) {
        recording =
            recording && succeeded("an activity cannot be recorded", cuptiActivityEnable(kind));
    }
    if (recording) std::atexit(write_trace);
    return 1;
}
