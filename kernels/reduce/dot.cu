// Dot product: each thread multiplies one pair, then a tree in shared memory adds them.
// Every round halves the number of adding threads; the barrier separates the rounds.
extern "C" __global__ void dot(const int* a, const int* b, int* result)
{
    __shared__ int part[32];
    int t = threadIdx.x;
    part[t] = a[t] * b[t];
    __syncthreads();
    #pragma unroll 1
    for (int step = 16; step > 0; step >>= 1) {
        if (t < step)
            part[t] += part[t + step];
        __syncthreads();
    }
    if (t == 0)
        *result = part[0];
}
