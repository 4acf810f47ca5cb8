// Constant memory holds the weights; its index is the same for all lanes.
__constant__ int weights[3] = { 1, -2, 5 };

extern "C" __global__ void constant_weights(const int* x, int* y)
{
    int sum = 0;
    #pragma unroll 1
    for (int k = 0; k < 3; ++k)
        sum += weights[k] * x[threadIdx.x + k];
    y[threadIdx.x] = sum;
}
