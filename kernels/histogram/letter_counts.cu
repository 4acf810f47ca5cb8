// Count vowels in a text: a chain of comparisons picks the counter, or none.
extern "C" __global__ void letter_counts(const unsigned char* text, int n, int* vowels)
{
    #pragma unroll 1
    for (int i = threadIdx.x; i < n; i += 32) {
        int c = text[i];
        int which = -1;
        if (c == 'a')
            which = 0;
        else if (c == 'e')
            which = 1;
        else if (c == 'i')
            which = 2;
        else if (c == 'o')
            which = 3;
        else if (c == 'u')
            which = 4;
        if (which >= 0)
            atomicAdd(&vowels[which], 1);
    }
}
