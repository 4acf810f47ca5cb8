// The same atomics work on shared memory: sum, minimum, maximum and union of bits.
extern "C" __global__ void atomic_shared(const int* x, int* result)
{
    __shared__ int s[4];
    int t = threadIdx.x;
    if (t < 4)
        s[t] = t == 1 ? 0x7fffffff : 0;
    __syncthreads();
    int v = x[t];
    atomicAdd(&s[0], v);
    atomicMin(&s[1], v);
    atomicMax(&s[2], v);
    atomicOr(&s[3], v);
    __syncthreads();
    if (t < 4)
        result[t] = s[t];
}
