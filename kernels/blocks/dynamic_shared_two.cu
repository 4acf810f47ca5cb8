// One dynamic buffer holds two arrays of different types, beside a static array.
extern "C" __global__ void dynamic_shared_two(const int* a, const short* b, int* c)
{
    extern __shared__ int buffer[];
    __shared__ int offset[16];
    int* first = buffer;
    short* second = (short*)(buffer + 16);
    int t = threadIdx.x;
    first[t] = a[t];
    second[t] = b[t];
    offset[t] = t * t;
    __syncthreads();
    int p = 15 - t;
    c[t] = first[p] * second[p] + offset[p];
}
