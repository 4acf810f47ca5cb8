// Butterfly exchange: after five steps every lane knows the largest value.
extern "C" __global__ void shuffle_xor(const int* x, int* y)
{
    int v = x[threadIdx.x];
    #pragma unroll
    for (int mask = 1; mask < 32; mask <<= 1)
        v = max(v, __shfl_xor_sync(0xffffffffu, v, mask));
    y[threadIdx.x] = v;
}
