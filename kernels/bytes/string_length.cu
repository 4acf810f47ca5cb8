// strlen: walk until the zero byte.
extern "C" __global__ void string_length(const char* text, int* length)
{
    const char* s = text + threadIdx.x * 8;
    int n = 0;
    #pragma unroll 1
    while (s[n])
        ++n;
    length[threadIdx.x] = n;
}
