// Kernels of the tests: what ordinary CUDA programs contain, one idea each.
#include <cassert>
#include <cooperative_groups.h>
#include <cstdio>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ __forceinline__ int global_index() {
    return blockIdx.x * blockDim.x + threadIdx.x;
}

// Elementwise

__global__ void axpy(const float* x, float* y, float a, int n) {
    const int i = global_index();
    if (i < n) y[i] = fmaf(a, x[i], y[i]);
}

__global__ void grid_stride(const double* x, double* y, long long n) {
    for (long long i = global_index(); i < n; i += (long long)gridDim.x * blockDim.x)
        y[i] = x[i] * 2.0 + 1.0;
}

struct Packet {
    char tag;
    short small;
    int count;
    double weight;
    unsigned char bytes[5];
};

__global__ void struct_argument(Packet packet, double* out) {
    const int i = threadIdx.x;
    out[i] = packet.tag + packet.small + packet.count * packet.weight + packet.bytes[i % 5];
}

__global__ void index_3d(unsigned* out) {
    const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
    const unsigned z = blockIdx.z * blockDim.z + threadIdx.z;
    const unsigned width = gridDim.x * blockDim.x, height = gridDim.y * blockDim.y;
    out[(z * height + y) * width + x] = x | y << 8 | z << 16;
}

__global__ void narrow_types(const signed char* a, const unsigned short* b, short* c,
                             unsigned char* d, int n) {
    const int i = global_index();
    if (i >= n) return;
    c[i] = a[i] * b[i];
    d[i] = a[i] + b[i];
}

// Divergence

__global__ void branches(const int* in, int* out, int n) {
    const int i = global_index();
    if (i >= n) return;
    int value = in[i];
    if (value % 2 == 0)
        value = value % 3 == 0 ? value * 7 : value - 1000;
    else if (value % 5 == 0)
        return;
    else
        value = -value;
    out[i] = value;
}

__global__ void collatz(int* out) {
    const unsigned i = global_index();
    unsigned long long value = i + 1;
    int steps = 0;
    while (value != 1) {
        if (value % 2 == 0)
            value /= 2;
        else
            value = 3 * value + 1;
        if (++steps > 300) break;
    }
    out[i] = steps;
}

__global__ void switch_case(const int* in, int* out) {
    const int i = global_index();
    int value = 0;
    switch (in[i]) {
    case 0:
        value = out[i] + 3;
        break;
    case 1:
        value = out[i] * 5;
        break;
    case 2:
        value = out[i] - 7;
        [[fallthrough]];
    case 3:
        value += 11;
        break;
    case 4:
        value = out[i] ^ 0x55;
        break;
    case 5:
        value = out[i] / 3;
        break;
    case 6:
        value = in[i + 1];
        break;
    case 7:
        value = ~out[i];
        break;
    default:
        value = -1;
    }
    out[i] = value;
}

// Shared memory

template <class T> __device__ T block_total(T value) {
    __shared__ T part[1024];
    part[threadIdx.x] = value;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    return part[0];
}

__global__ void sum_int(const int* in, int* out, int n) {
    const int i = global_index();
    const int total = block_total(i < n ? in[i] : 0);
    if (threadIdx.x == 0) atomicAdd(out, total);
}

__global__ void sum_double(const double* in, double* out) {
    const double total = block_total(in[global_index()]);
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}

__global__ void reverse_dynamic(const int* in, int* out) {
    extern __shared__ int dynamic[];
    dynamic[threadIdx.x] = in[global_index()];
    __syncthreads();
    out[global_index()] = dynamic[blockDim.x - 1 - threadIdx.x];
}

__global__ void transpose(const float* in, float* out, int width, int height) {
    __shared__ float tile[16][17];
    const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < width && y < height) tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
    const int u = blockIdx.y * 16 + threadIdx.x, v = blockIdx.x * 16 + threadIdx.y;
    if (u < height && v < width) out[v * height + u] = tile[threadIdx.x][threadIdx.y];
}

__global__ void generic_pointers(int* global, int* out, int which) {
    __shared__ int shared[64];
    int local[4] = {1, 2, 3, 4};
    shared[threadIdx.x] = threadIdx.x * 10;
    __syncthreads();
    int* pointers[3] = {global, shared, local};
    int* chosen = pointers[(which + threadIdx.x) % 3];
    out[threadIdx.x] = chosen[threadIdx.x % 4];
}

__global__ void barrier_reductions(int* out) {
    const int predicate = threadIdx.x % 3 == 0;
    out[3 * threadIdx.x] = __syncthreads_count(predicate);
    out[3 * threadIdx.x + 1] = __syncthreads_and(threadIdx.x < 1000);
    out[3 * threadIdx.x + 2] = __syncthreads_or(threadIdx.x == 77);
}

__global__ void named_barriers(int* out) {
    __shared__ int box[64];
    const int warp = threadIdx.x / 32;
    // warps 0 and 1 hand over through barrier 1, warps 2 and 3 through barrier 2
    const int barrier = 1 + warp / 2;
    if (warp % 2 == 0) {
        box[warp / 2 * 32 + threadIdx.x % 32] = threadIdx.x;
        asm volatile("bar.arrive %0, 64;" ::"r"(barrier) : "memory");
    } else {
        asm volatile("bar.sync %0, 64;" ::"r"(barrier) : "memory");
        out[warp / 2 * 32 + threadIdx.x % 32] = box[warp / 2 * 32 + 31 - threadIdx.x % 32];
    }
}

__global__ void early_exit(int* out) {
    if (threadIdx.x >= 40) return;
    __shared__ int box[40];
    box[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = box[39 - threadIdx.x];
}

// Warps

__global__ void shuffles(const int* in, int* out) {
    const int i = threadIdx.x, n = blockDim.x;
    const int value = in[i];
    out[i] = __shfl_sync(0xffffffff, value, (i * 7) % 32);
    out[n + i] = __shfl_up_sync(0xffffffff, value, 3);
    out[2 * n + i] = __shfl_down_sync(0xffffffff, value, 5);
    out[3 * n + i] = __shfl_xor_sync(0xffffffff, value, 9);
    out[4 * n + i] = __shfl_sync(0xffffffff, value, 2, 8);
    out[5 * n + i] = __shfl_up_sync(0xffffffff, value, 2, 8);
    out[6 * n + i] = __shfl_down_sync(0xffffffff, value, 1, 4);
    out[7 * n + i] = __shfl_xor_sync(0xffffffff, value, 5, 16);
}

__global__ void shuffle_wide(const double* in, double* out) {
    double sum = in[threadIdx.x];
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, offset);
    out[threadIdx.x] = sum;
}

__global__ void votes(const int* in, unsigned* out) {
    const int i = threadIdx.x;
    out[5 * i] = __ballot_sync(0xffffffff, in[i] > 5);
    out[5 * i + 1] = __any_sync(0xffffffff, in[i] > 90);
    out[5 * i + 2] = __all_sync(0xffffffff, in[i] >= 0);
    out[5 * i + 3] = __match_any_sync(0xffffffff, in[i] % 4);
    int same;
    out[5 * i + 4] = __match_all_sync(0xffffffff, in[i] / 1000, &same) + same;
}

__global__ void partial_warp(const int* in, int* out) {
    const int i = threadIdx.x;
    if (i % 32 < 20) {
        const unsigned members = __ballot_sync(0x000fffff, in[i] % 2 == 0);
        out[i] = __popc(members) * 1000 + __shfl_sync(0x000fffff, in[i], 19);
    } else {
        out[i] = __popc(__activemask());
    }
}

/// Lanes take different ways to the same shuffle and have to wait for each other.
__global__ void meeting(int* out) {
    int value = threadIdx.x;
    for (int k = 0; k < int(threadIdx.x % 7); ++k)
        value = value * 3 + k;
    __syncwarp();
    out[threadIdx.x] = __shfl_xor_sync(0xffffffff, value, 1);
}

// Atomics

__global__ void atomics(int* words, unsigned* unsigned_words, unsigned long long* wide, float* f,
                        double* d) {
    const int i = global_index();
    atomicAdd(&words[0], i);
    atomicSub(&words[1], 3);
    atomicMin(&words[2], -i);
    atomicMax(&words[3], i);
    atomicAnd(&words[4], ~(1 << (i % 8)));
    atomicOr(&words[5], 1 << (i % 16));
    atomicXor(&words[6], i);
    atomicInc(&unsigned_words[0], 99);
    atomicDec(&unsigned_words[1], 99);
    atomicMin(&unsigned_words[2], 0x80000000u - i);
    atomicMax(&unsigned_words[3], 0x80000000u + i);
    atomicAdd(&wide[0], 0x100000000ull);
    atomicMax(&wide[1], (unsigned long long)i << 33);
    atomicAdd(f, 0.5f);
    atomicAdd(d, 0.25);
    atomicAdd_system(&words[7], 1);
    atomicAdd_block(&words[8], 2);
}

__global__ void atomic_results(unsigned* counter, unsigned* order, int* lock, int* swapped) {
    const int i = global_index();
    order[i] = atomicAdd(counter, 1u);
    swapped[i] = atomicCAS(lock, 0, i + 1);
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    atomicAdd(&total, 1);
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(&swapped[i], total);
}

__global__ void spin_lock(int* lock, int* total) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            *(volatile int*)total = *(volatile int*)total + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

/// The lock as it is often written, which needs lanes to make progress independently.
__global__ void naive_lock(int* lock, int* total) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    *(volatile int*)total = *(volatile int*)total + 1;
    __threadfence();
    atomicExch(lock, 0);
}

// Wider accesses

__global__ void vectors(const float4* in, float4* out, const double2* wide, double2* wide_out,
                        const uchar4* bytes, uchar4* bytes_out, const short2* shorts,
                        short2* shorts_out) {
    const int i = global_index();
    const float4 v = in[i];
    out[i] = make_float4(v.w, v.z, v.y, v.x);
    const double2 w = wide[i];
    wide_out[i] = make_double2(w.y * 2, w.x);
    const uchar4 b = bytes[i];
    bytes_out[i] = make_uchar4(b.y, b.x, b.w, b.z);
    const short2 s = shorts[i];
    shorts_out[i] = make_short2(s.y, -s.x);
}

__global__ void strided(const float* in, float* out, int stride) {
    const int i = global_index();
    out[i] = in[i * stride];
}

__global__ void broadcast(const int* in, int* out) {
    out[global_index()] = *in;
}

// Arithmetic

__global__ void integers(const long long* a, const long long* b, long long* out, int n) {
    const int i = global_index();
    if (i >= n) return;
    const long long x = a[i], y = b[i];
    const unsigned long long ux = x, uy = y;
    const int sx = (int)x, sy = (int)y;
    const unsigned vx = (unsigned)x, vy = (unsigned)y;
    long long* o = out + (long long)i * 24;
    o[0] = x / y;
    o[1] = x % y;
    o[2] = ux / uy;
    o[3] = ux % uy;
    o[4] = sy != 0 ? sx / (sy == -1 ? 1 : sy) : 0;
    o[5] = sy != 0 ? sx % (sy == -1 ? 1 : sy) : 0;
    o[6] = vy != 0 ? vx / vy : 0;
    o[7] = vy != 0 ? vx % vy : 0;
    o[8] = __mulhi(sx, sy);
    o[9] = __umulhi(vx, vy);
    o[10] = __mul64hi(x, y);
    o[11] = __umul64hi(ux, uy);
    o[12] = x << (y & 63);
    o[13] = x >> (y & 63);
    o[14] = ux >> (uy & 63);
    o[15] = __clzll(x) * 100 + __popcll(x);
    o[16] = __brevll(x);
    o[17] = __ffsll(x) * 100 + __ffs(sx);
    o[18] = __byte_perm(vx, vy, 0x3715);
    o[19] = __funnelshift_l(vx, vy, sx & 31);
    o[20] = abs(sx) + llabs(x) + min(sx, sy) + max(vx, vy);
    o[21] = __sad(sx, sy, 7u) + __mul24(sx, sy);
    o[22] = __dp4a(sx, sy, 5) + __dp4a(vx, vy, 5u);
    o[23] = __rhadd(sx, sy) + __clz(sx) + __popc(vx) + __brev(vx);
}

__global__ void wide_products(const unsigned long long* a, const unsigned long long* b,
                              unsigned long long* out) {
    const int i = threadIdx.x;
    const unsigned __int128 product = (unsigned __int128)a[i] * b[i] + a[i];
    const unsigned __int128 sum = product + ((unsigned __int128)b[i] << 64 | a[i]) - b[i];
    out[2 * i] = (unsigned long long)sum;
    out[2 * i + 1] = (unsigned long long)(sum >> 64);
}

__global__ void floats(const float* a, const float* b, float* out, int n) {
    const int i = global_index();
    if (i >= n) return;
    const float x = a[i], y = b[i];
    float* o = out + i * 24;
    o[0] = x + y;
    o[1] = x - y;
    o[2] = x * y;
    o[3] = x / y;
    o[4] = sqrtf(x);
    o[5] = fmaf(x, y, x);
    o[6] = fminf(x, y);
    o[7] = fmaxf(x, y);
    o[8] = fabsf(x);
    o[9] = copysignf(x, y);
    o[10] = floorf(x);
    o[11] = ceilf(x);
    o[12] = truncf(x);
    o[13] = rintf(x);
    o[14] = __frcp_rn(x);
    o[15] = __fadd_rz(x, y);
    o[16] = __fadd_ru(x, y);
    o[17] = __fmul_rd(x, y);
    o[18] = __fdiv_rz(x, y);
    o[19] = __fsqrt_ru(fabsf(y));
    o[20] = __saturatef(x);
    o[21] = x < y ? 1.0f : x > y ? 2.0f : x == y ? 3.0f : 4.0f;
    o[22] = isnan(x) + 2 * isinf(x) + 4 * !(x >= y) + 8 * signbit(x);
    o[23] = __fmaf_rd(x, y, -x);
}

__global__ void doubles(const double* a, const double* b, double* out, int n) {
    const int i = global_index();
    if (i >= n) return;
    const double x = a[i], y = b[i];
    double* o = out + i * 12;
    o[0] = x + y;
    o[1] = x * y;
    o[2] = x / y;
    o[3] = sqrt(fabs(x));
    o[4] = fma(x, y, y);
    o[5] = fmin(x, y);
    o[6] = fmax(x, y);
    o[7] = floor(x);
    o[8] = rint(x);
    o[9] = __dadd_ru(x, y);
    o[10] = __dmul_rz(x, y);
    o[11] = __ddiv_rd(x, y);
}

__global__ void conversions(const double* in, long long* out, int n) {
    const int i = global_index();
    if (i >= n) return;
    const double x = in[i];
    const float f = (float)x;
    long long* o = out + (long long)i * 20;
    o[0] = (int)x;
    o[1] = (unsigned)x;
    o[2] = (long long)x;
    o[3] = (unsigned long long)x;
    o[4] = __double2int_rn(x);
    o[5] = __double2int_ru(x);
    o[6] = __double2ll_rd(x);
    o[7] = __float2int_rz(f);
    o[8] = __float2uint_ru(f);
    o[9] = (short)(int)x;
    o[10] = (unsigned char)(int)x;
    o[11] = __float_as_int(__double2float_rz(x));
    o[12] = __float_as_int(__double2float_ru(x));
    o[13] = __float_as_int((float)(int)x);
    o[14] = __float_as_int(__int2float_rz((int)x));
    o[15] = __float_as_int((float)(unsigned long long)(long long)fabs(x));
    o[16] = __double_as_longlong((double)(long long)x);
    o[17] = __half_as_ushort(__float2half(f));
    o[18] = __half_as_ushort(__double2half(x));
    o[19] = __bfloat16_as_ushort(__float2bfloat16(f));
}

__global__ void mathematics(const double* in, double* out, const float* single, float* single_out) {
    const int i = threadIdx.x;
    const double x = in[i];
    double* o = out + i * 8;
    o[0] = sin(x);
    o[1] = cos(x * 1e6);
    o[2] = exp(x);
    o[3] = log(fabs(x) + 1e-3);
    o[4] = pow(fabs(x) + 0.5, x);
    o[5] = tanh(x);
    o[6] = cbrt(x);
    o[7] = atan2(x, 2.0);
    const float f = single[i];
    float* s = single_out + i * 10;
    s[0] = sinf(f);
    s[1] = cosf(f * 1e5f);
    s[2] = expf(f);
    s[3] = logf(fabsf(f) + 1e-3f);
    s[4] = powf(fabsf(f) + 0.5f, f);
    s[5] = tanhf(f);
    s[6] = rsqrtf(fabsf(f) + 1e-3f);
    s[7] = __expf(f);
    s[8] = __sinf(f);
    s[9] = erff(f);
}

__global__ void halves(const __half* a, const __half* b, __half* out, const __half2* pairs,
                       __half2* pairs_out, const __nv_bfloat16* brain, __nv_bfloat16* brain_out) {
    const int i = threadIdx.x;
    __half* o = out + i * 8;
    o[0] = a[i] + b[i];
    o[1] = a[i] - b[i];
    o[2] = a[i] * b[i];
    o[3] = __hfma(a[i], b[i], a[i]);
    o[4] = __hmax(a[i], b[i]);
    o[5] = __hlt(a[i], b[i]) ? a[i] : __hneg(b[i]);
    o[6] = __habs(a[i]);
    o[7] = __float2half(__half2float(a[i]) * 3.0f);

    pairs_out[i] = __hfma2(pairs[i], pairs[i], __hadd2(pairs[i], pairs[i]));
    brain_out[i] = __hadd(brain[i], __hmul(brain[i], __float2bfloat16(1.5f)));
}

__global__ void half_comparisons(const __half2* a, const __half2* b, __half2* greater, int* all) {
    const int i = threadIdx.x;
    greater[i] = __hgt2(a[i], b[i]);
    all[2 * i] = __hbge2(a[i], b[i]);
    all[2 * i + 1] = __hbltu2(a[i], b[i]);
}

// Functions

__device__ __noinline__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__global__ void recursion(int* out) {
    out[threadIdx.x] = fibonacci(threadIdx.x % 12);
}

__device__ __noinline__ Packet change(Packet packet, int by) {
    packet.count += by;
    packet.weight *= 2;
    packet.bytes[by % 5] = 9;
    return packet;
}

__global__ void struct_function(Packet* packets) {
    packets[threadIdx.x] = change(packets[threadIdx.x], threadIdx.x);
}

__device__ __noinline__ int twice(int x) {
    return 2 * x;
}
__device__ __noinline__ int square(int x) {
    return x * x;
}
__device__ __noinline__ int negative(int x) {
    return -x;
}
typedef int (*Function)(int);
__device__ Function functions[3] = {twice, square, negative};

__global__ void function_pointers(int* out) {
    int value = threadIdx.x;
    for (int k = 0; k < 3; ++k)
        value = functions[(threadIdx.x + k) % 3](value) + k;
    out[threadIdx.x] = value;
}

struct Shape {
    __device__ virtual int area() const { return 0; }
};
struct Square : Shape {
    int side;
    __device__ explicit Square(int s) : side(s) {}
    __device__ int area() const override { return side * side; }
};
struct Strip : Shape {
    int length;
    __device__ explicit Strip(int l) : length(l) {}
    __device__ int area() const override { return length; }
};

__global__ void virtual_functions(int* out) {
    Square square(threadIdx.x);
    Strip strip(threadIdx.x);
    const Shape* shape = threadIdx.x % 2 == 0 ? (const Shape*)&square : (const Shape*)&strip;
    out[threadIdx.x] = shape->area();
}

// Local and constant memory, variables

__constant__ float coefficients[8] = {1, 2, 4, 8, 16, 32, 64, 128};
__device__ int counter = 41;
__device__ int* counter_pointer = &counter;
__device__ double untouched[100];

__global__ void local_array(const int* in, int* out, int n) {
    int table[20];
    for (int i = 0; i < 20; ++i)
        table[i] = i * n;
    int sum = 0;
    for (int i = 0; i < n; ++i)
        sum += table[(in[threadIdx.x] + i * 7) % 20];
    out[threadIdx.x] = sum;
}

__global__ void constants(float* out) {
    out[threadIdx.x] = coefficients[threadIdx.x % 8] + coefficients[3];
}

__global__ void variables(int* out) {
    out[0] = *counter_pointer;
    counter += 1;
    untouched[99] = 2.5;
}

// Output and faults

__global__ void greetings(const char* text, int x) {
    printf("%d %s|%5.2f|%-6d|%x %c %llu %%|%p %e\n", x, text, x * 0.5, x, x + 250, 'A' + x,
           1ull << 40, (void*)0x1234, 1e10);
    if (threadIdx.x == 1) printf("no arguments\n");
}

__global__ void asserting(const int* in) {
    assert(in[threadIdx.x] != 7);
}

__global__ void trapping(int* out) {
    out[threadIdx.x] = 1;
    if (threadIdx.x == 3) __trap();
}

__global__ void wild_write(int* a, long long offset) {
    a[threadIdx.x + (threadIdx.x == 5 ? offset : 0)] = threadIdx.x;
}

__global__ void misaligned(const char* a, int* out) {
    out[threadIdx.x] = *(const int*)(a + threadIdx.x * 4 + (threadIdx.x == 9));
}

__global__ void shared_overrun(int* out, int index) {
    __shared__ int box[32];
    box[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = box[index];
}

__global__ void deep_recursion(int* out, int depth) {
    out[threadIdx.x] = fibonacci(depth);
}

__global__ void lopsided_barrier(int* out) {
    if (threadIdx.x < 32)
        asm volatile("bar.sync 1;");
    else
        asm volatile("bar.sync 2;");
    out[0] = 1;
}

// Waiting

__global__ void ping_pong(volatile int* turn, int rounds, int* log) {
    for (int i = 0; i < rounds; ++i) {
        while (*turn != int(blockIdx.x)) {
        }
        log[2 * i + blockIdx.x] = 2 * i + blockIdx.x;
        __threadfence();
        *turn = 1 - blockIdx.x;
    }
}

__global__ void cooperative(int* a) {
    auto grid = cooperative_groups::this_grid();
    const int i = grid.thread_rank(), n = grid.size();
    a[i] = i;
    grid.sync();
    const int other = a[(i + 1000) % n];
    grid.sync();
    a[i] = 2 * i + other;
}

__global__ void wait_for_flag(volatile int* flag, int* out) {
    while (*flag == 0)
        __nanosleep(100);
    out[threadIdx.x] = *flag;
}

__device__ __forceinline__ unsigned long long timer() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

__global__ void sleeper(unsigned long long nanoseconds, unsigned long long* out) {
    const unsigned long long start = timer();
    while (timer() - start < nanoseconds)
        __nanosleep(20000);
    out[blockIdx.x] = timer() - start;
}

__global__ void busy_timer(unsigned long long nanoseconds) {
    const unsigned long long start = timer();
    while (timer() - start < nanoseconds) {
    }
}

__global__ void busy_clock(long long ticks, long long* out) {
    const long long start = clock64();
    while (clock64() - start < ticks) {
    }
    out[0] = clock64() - start;
}

__global__ void block_barrier(unsigned* arrived, int* out) {
    // every block waits for all others: only blocks that run at the same time can
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1u);
        while (*(volatile unsigned*)arrived < gridDim.x) {
        }
    }
    __syncthreads();
    out[global_index()] = *(volatile unsigned*)arrived;
}
