// Shuffle down by two within groups of eight lanes: the last two of a group keep theirs.
extern "C" __global__ void shuffle_down(const int* x, int* y)
{
    y[threadIdx.x] = __shfl_down_sync(0xffffffffu, x[threadIdx.x], 2, 8);
}
