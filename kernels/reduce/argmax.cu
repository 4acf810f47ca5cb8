// Reduce pairs (value, position) with shuffles; on a tie the smaller position wins.
extern "C" __global__ void argmax(const int* x, int* where, int* value)
{
    int best = x[threadIdx.x];
    int at = threadIdx.x;
    #pragma unroll 1
    for (int step = 16; step > 0; step >>= 1) {
        int other = __shfl_down_sync(0xffffffffu, best, step);
        int other_at = __shfl_down_sync(0xffffffffu, at, step);
        if (other > best || (other == best && other_at < at)) {
            best = other;
            at = other_at;
        }
    }
    if (threadIdx.x == 0) {
        *where = at;
        *value = best;
    }
}
