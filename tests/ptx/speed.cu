// Kernels whose speed is measured.

__global__ void scale(float* a, float factor, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] *= factor;
}

__global__ void saxpy(const float* x, float* y, float a, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void block_sum(const float* in, float* out, int n) {
    __shared__ float part[256];
    const int t = threadIdx.x;
    const int i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}

__global__ void warp_sum(const float* in, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = i < n ? in[i] : 0;
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0) out[i / 32] = sum;
}

__global__ void stencil(const float* in, float* out, int width, int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    const int i = y * width + x;
    out[i] = 0.25f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]) - in[i];
}

__global__ void gather(const float* in, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[(unsigned(i) * 2654435761u) % unsigned(n)];
}

__global__ void collatz(float* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long value = i + 1;
    int steps = 0;
    while (value != 1) {
        value = value % 2 == 0 ? value / 2 : 3 * value + 1;
        ++steps;
    }
    out[i] = steps;
}

__global__ void lonely(float* out, int steps) {
    float value = 1;
    for (int i = 0; i < steps; ++i)
        value = value * 0.5f + float(i);
    out[0] = value;
}
