// Scaled vector addition in place: y = a * x + y.
// 27 elements on 2 blocks of 16 threads, so the last five threads do nothing.
extern "C" __global__ void saxpy(int a, const int* x, int* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
