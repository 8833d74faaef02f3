// Reads the PTX out of the fat binary that nvcc embeds in a program. Layout as measured with
// nvcc 13.0: a wrapper points to a header, and the header is followed by entries.
#include "ptx/ptx.hpp"

#include <algorithm>
#include <cstring>

#include <lz4.h>
#include <zstd.h>

namespace sim::ptx {
namespace {

constexpr std::uint32_t wrapper_magic = 0x466243b1;
constexpr std::uint32_t header_magic = 0xBA55ED50;
constexpr std::uint16_t entry_is_ptx = 1;
constexpr std::uint64_t flag_zstd = 0x8000;
constexpr std::uint64_t flag_lz4 = 0x2000;
constexpr std::uint64_t largest_text = std::uint64_t{1} << 30;

struct Wrapper {
    std::uint32_t magic;
    std::uint32_t version;
    const std::byte* data;
    const std::byte* const* prelinked;
};
static_assert(sizeof(Wrapper) == 24);

struct Header {
    std::uint32_t magic;
    std::uint16_t version;
    std::uint16_t header_bytes;
    std::uint64_t payload_bytes;
};
static_assert(sizeof(Header) == 16);

struct Entry {
    std::uint16_t kind;
    std::uint16_t version;
    std::uint32_t header_bytes;
    std::uint64_t padded_bytes;
    std::uint32_t compressed_bytes;
    std::uint32_t reserved;
    std::uint16_t minor;
    std::uint16_t major;
    std::uint32_t architecture;
    std::uint32_t name_offset;
    std::uint32_t name_bytes;
    std::uint64_t flags;
    std::uint64_t reserved2;
    std::uint64_t uncompressed_bytes;
};
static_assert(sizeof(Entry) == 64);

struct Found {
    Entry entry;
    const std::byte* payload;
};

[[noreturn]] void malformed(const std::string& what) {
    throw Error("the program's fat binary cannot be read: " + what);
}

template <class T> T read(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

/// Adds the PTX entries of one fat binary. Its own header says how long it is; nothing outside of
/// that length is read.
void collect(const std::byte* data, std::vector<Found>& found) {
    const auto header = read<Header>(data);
    if (header.magic != header_magic) malformed("the header does not start with its magic number");
    if (header.header_bytes != sizeof(Header)) malformed("the header has another length than 16");
    const std::byte* position = data + header.header_bytes;
    std::uint64_t left = header.payload_bytes;
    while (left >= sizeof(Entry)) {
        const auto entry = read<Entry>(position);
        if (entry.header_bytes < sizeof(Entry) || entry.header_bytes > left ||
            entry.padded_bytes > left - entry.header_bytes)
            malformed("an entry is longer than the binary");
        if (entry.kind == entry_is_ptx) found.push_back({entry, position + entry.header_bytes});
        position += entry.header_bytes + entry.padded_bytes;
        left -= entry.header_bytes + entry.padded_bytes;
    }
}

std::string plain(const Found& found) {
    std::string text(reinterpret_cast<const char*>(found.payload), found.entry.padded_bytes);
    text.resize(std::min(text.size(), text.find('\0')));
    return text;
}

void check_compressed(const Entry& entry) {
    if (entry.compressed_bytes > entry.padded_bytes)
        malformed("a compressed entry is longer than its place");
    if (entry.uncompressed_bytes > largest_text) malformed("a PTX entry claims more than 1 GiB");
}

std::string unpack_zstd(const Found& found) {
    check_compressed(found.entry);
    std::string text(found.entry.uncompressed_bytes, '\0');
    const std::size_t got =
        ZSTD_decompress(text.data(), text.size(), found.payload, found.entry.compressed_bytes);
    if (ZSTD_isError(got)) malformed(std::string("zstd says: ") + ZSTD_getErrorName(got));
    text.resize(got);
    return text;
}

std::string unpack_lz4(const Found& found) {
    check_compressed(found.entry);
    std::string text(found.entry.uncompressed_bytes, '\0');
    const int got = LZ4_decompress_safe(reinterpret_cast<const char*>(found.payload), text.data(),
                                        static_cast<int>(found.entry.compressed_bytes),
                                        static_cast<int>(text.size()));
    if (got < 0) malformed("an LZ4 compressed entry is damaged");
    text.resize(static_cast<std::size_t>(got));
    return text;
}

std::string text_of(const Found& found) {
    std::string text = (found.entry.flags & flag_zstd) != 0  ? unpack_zstd(found)
                       : (found.entry.flags & flag_lz4) != 0 ? unpack_lz4(found)
                                                             : plain(found);
    while (!text.empty() && text.back() == '\0')
        text.pop_back();
    return text;
}

/// Separate compilation leaves one fat binary a source file; their texts are linked by the parser.
void append_best(const std::byte* data, std::string& text) {
    std::vector<Found> found;
    collect(data, found);
    const auto best =
        std::max_element(found.begin(), found.end(), [](const auto& a, const auto& b) {
            return a.entry.architecture < b.entry.architecture;
        });
    if (best == found.end()) return;
    if (!text.empty()) text += '\n';
    text += text_of(*best);
}

} // namespace

std::string find_ptx(const void* pointer) {
    if (pointer == nullptr) malformed("no wrapper");
    const auto wrapper = read<Wrapper>(static_cast<const std::byte*>(pointer));
    if (wrapper.magic != wrapper_magic)
        malformed("the wrapper does not start with its magic number");
    if (wrapper.version != 1 && wrapper.version != 2)
        malformed("unknown wrapper version " + std::to_string(wrapper.version));

    std::string text;
    if (wrapper.data != nullptr) append_best(wrapper.data, text);
    if (wrapper.version == 2 && wrapper.prelinked != nullptr)
        for (auto binary = wrapper.prelinked; *binary != nullptr; ++binary)
            append_best(*binary, text);
    if (text.empty())
        throw Error("the program contains no PTX, only code for certain GPUs: compile it with "
                    "-arch=compute_75, or with -gencode arch=compute_75,code=compute_75");
    return text;
}

} // namespace sim::ptx
