// A short text, to be damaged in every place.
__device__ int table[4] = {1, 2, 3, 4};
__device__ int* pointer = &table[2];

__device__ __noinline__ int next(int x) {
    return x + table[x & 3];
}

__global__ void first(float* a, int n) {
    __shared__ float box[32];
    const int i = threadIdx.x;
    if (i < n) box[i] = a[i] * 1.5f;
    __syncthreads();
    a[i] = box[31 - i];
}

__global__ void second(int* a) {
    a[threadIdx.x] = next(a[threadIdx.x]) + *pointer;
}
