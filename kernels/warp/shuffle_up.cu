// Shuffle up by a variable: lane i gets lane i - by; the lowest lanes keep their value.
extern "C" __global__ void shuffle_up(const int* x, int by, int* y)
{
    y[threadIdx.x] = __shfl_up_sync(0xffffffffu, x[threadIdx.x], by);
}
