// Kernels with barriers, warp operations, atomics and calls, for every installed compiler.
// Each takes (int *out, const int *in, int n) and runs as one CTA of n threads.
#define FULL 0xffffffffu
#define KERNEL extern "C" __global__ void

__constant__ int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ int counter = 5;

KERNEL histogram(int *out, const int *in, int n) {
    __shared__ unsigned bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&bins[in[i] & 15], 1u);
    __syncthreads();
    if (threadIdx.x < 16) out[threadIdx.x] = bins[threadIdx.x];
}

KERNEL scan(int *out, const int *in, int n) {
    extern __shared__ int sums[];
    int t = threadIdx.x;
    sums[t] = in[t];
    __syncthreads();
    for (int d = 1; d < blockDim.x; d <<= 1) {
        int v = t >= d ? sums[t - d] : 0;
        __syncthreads();
        sums[t] += v;
        __syncthreads();
    }
    out[t] = sums[t];
}

KERNEL reduce(int *out, const int *in, int n) {
    __shared__ int partial[32];
    int t = threadIdx.x, v = in[t];
    for (int o = 16; o; o >>= 1) v += __shfl_down_sync(FULL, v, o);
    if ((t & 31) == 0) partial[t >> 5] = v;
    __syncthreads();
    if (t < 32) {
        v = t < (blockDim.x >> 5) ? partial[t] : 0;
        for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(FULL, v, o);
        if (!t) out[0] = v;
    }
}

KERNEL bitonic_sort(int *out, const int *in, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    for (int k = 2; k <= 64; k <<= 1)
        for (int j = k >> 1; j; j >>= 1) {
            int p = t ^ j;
            if (p > t) {
                bool up = (t & k) == 0;
                if ((s[t] > s[p]) == up) {
                    int x = s[t];
                    s[t] = s[p];
                    s[p] = x;
                }
            }
            __syncthreads();
        }
    out[t] = s[t];
}

KERNEL square(int *out, const int *in, int n) {
    __shared__ int a[8][8], b[8][9];
    int x = threadIdx.x & 7, y = threadIdx.x >> 3;
    a[y][x] = in[threadIdx.x];
    b[x][y] = in[threadIdx.x];
    __syncthreads();
    int sum = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) sum += a[y][i] * b[x][i];
    out[threadIdx.x] = sum;
}

KERNEL vectors(int *out, const int *in, int n) {
    int t = threadIdx.x;
    if (t < n / 4) {
        int4 v = ((const int4 *)in)[t];
        ((int4 *)out)[t] = make_int4(v.w, v.z, v.y + table[t & 7], v.x);
    }
}

KERNEL lock(int *out, const int *in, int n) {
    bool done = false;
    while (!done) {
        if (atomicCAS(&out[0], 0, 1) == 0) {
            out[1] = out[1] + in[threadIdx.x];
            __threadfence();
            atomicExch(&out[0], 0);
            done = true;
        }
    }
}

KERNEL votes(int *out, const int *in, int n) {
    int t = threadIdx.x;
    unsigned odd = __ballot_sync(FULL, in[t] & 1);
    int rank = __popc(odd & ((1u << (t & 31)) - 1));
    int positive = __syncthreads_count(in[t] > 0);
    int large = __syncthreads_or(in[t] == 12345);
    out[t] = rank * 1000 + positive + large;
}

KERNEL segments(int *out, const int *in, int n) {
    int t = threadIdx.x, v = in[t];
    for (int d = 1; d < 8; d <<= 1) {
        int u = __shfl_up_sync(FULL, v, d, 8);
        if ((t & 7) >= d) v += u;
    }
    out[t] = v + __shfl_sync(FULL, v, 3, 8);
}

KERNEL atomics(int *out, const int *in, int n) {
    int t = threadIdx.x;
    atomicMax(&out[0], in[t]);
    atomicMin(&out[1], in[t]);
    atomicAnd(&out[2], in[t]);
    atomicOr(&out[3], in[t]);
    atomicXor(&out[4], in[t]);
    atomicAdd(&counter, 1);
    __syncthreads();
    if (!t) out[5] = counter;
}

__device__ __noinline__ int plus(int a, int b) { return a + b; }
__device__ __noinline__ int times(int a, int b) { return a * b; }
typedef int (*Operation)(int, int);

KERNEL pointers(int *out, const int *in, int n) {
    int t = threadIdx.x;
    Operation f = (in[t] & 1) ? plus : times;
    out[t] = f(in[t], t);
}

__device__ int depth(int n) {
    int kept[4];
    for (int i = 0; i < 4; i++) kept[(n + i) & 3] = i * n;
    return n <= 0 ? kept[1] : depth(n - 1) + kept[n & 3] + n;
}

KERNEL recursion(int *out, const int *in, int n) { out[threadIdx.x] = depth(in[threadIdx.x] & 7); }
