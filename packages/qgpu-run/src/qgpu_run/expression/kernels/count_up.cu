// Numbers from a first one on in equal steps.
extern "C" __global__ void count_up(const int* first, const int* step, int* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = *first + i * *step;
}
