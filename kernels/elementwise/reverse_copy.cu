// Address arithmetic with a negative stride: y is x back to front.
extern "C" __global__ void reverse_copy(const int* x, int* y, int n)
{
    int i = threadIdx.x;
    if (i < n)
        y[n - 1 - i] = x[i];
}
