// Compare from both ends and stop at the first difference.
extern "C" __global__ void palindrome(const unsigned char* text, unsigned char* yes)
{
    const unsigned char* s = text + threadIdx.x * 8;
    int i = 0;
    #pragma unroll 1
    while (i < 4 && s[i] == s[7 - i])
        ++i;
    yes[threadIdx.x] = i == 4;
}
