// A block need not fill its warp: with 20 threads the mask has 20 bits.
extern "C" __global__ void short_warp(const int* x, unsigned* votes, int* left)
{
    int lane = threadIdx.x;
    int v = x[lane];
    unsigned b = __ballot_sync(0x000fffffu, v < 0);
    left[lane] = __shfl_sync(0x000fffffu, v, lane == 0 ? 19 : lane - 1);
    if (lane == 0)
        *votes = b;
}
