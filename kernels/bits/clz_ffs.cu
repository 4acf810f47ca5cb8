// Count leading zeros (32 for zero) and find the first set bit (0 for zero).
extern "C" __global__ void clz_ffs(const int* x, int* clz, int* ffs)
{
    int v = x[threadIdx.x];
    clz[threadIdx.x] = __clz(v);
    ffs[threadIdx.x] = __ffs(v);
}
