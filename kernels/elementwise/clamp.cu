// Clamp to a range with min and max.
extern "C" __global__ void clamp(const int* x, int low, int high, int* y)
{
    int i = threadIdx.x;
    y[i] = min(max(x[i], low), high);
}
