// Quantised layer: signed bytes are widened, multiplied and summed in 32 bits.
extern "C" __global__ void int8_dot_rows(const signed char* w, const signed char* x, int* y)
{
    int row = threadIdx.x;
    int sum = 0;
    #pragma unroll 1
    for (int k = 0; k < 8; ++k)
        sum += w[row * 8 + k] * x[k];
    y[row] = sum;
}
