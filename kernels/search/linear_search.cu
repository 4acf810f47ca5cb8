// All lanes compare at once; the lowest set bit of the ballot is the first match (or -1).
extern "C" __global__ void linear_search(const int* x, int value, int* place)
{
    unsigned hits = __ballot_sync(0xffffffffu, x[threadIdx.x] == value);
    if (threadIdx.x == 0)
        *place = __ffs(hits) - 1;
}
