// Take from one counter, add to a 64-bit total.
extern "C" __global__ void atomic_sub_sum64(const int* x, int* left, unsigned long long* sum)
{
    int v = x[threadIdx.x];
    atomicSub(left, v & 63);
    atomicAdd(sum, (unsigned long long)v);
}
