// Naive string search: thread i compares the pattern with the text at place i.
extern "C" __global__ void substring(const unsigned char* text, int n, const unsigned char* pattern, int m, unsigned char* match)
{
    int i = threadIdx.x;
    if (i + m > n)
        return;
    int k = 0;
    #pragma unroll 1
    while (k < m && text[i + k] == pattern[k])
        ++k;
    match[i] = k == m;
}
