// Sum of squares of 32-bit numbers needs 64 bits; a 64-bit shuffle is two 32-bit ones.
extern "C" __global__ void norm2(const int* x, long long* norm)
{
    long long v = x[threadIdx.x] >> 2;
    long long sum = v * v;
    #pragma unroll 1
    for (int step = 16; step > 0; step >>= 1)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x == 0)
        *norm = sum;
}
