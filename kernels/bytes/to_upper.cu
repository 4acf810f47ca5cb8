// Bytes in place: only the letters a to z change.
extern "C" __global__ void to_upper(unsigned char* text)
{
    unsigned char c = text[threadIdx.x];
    if (c >= 'a' && c <= 'z')
        text[threadIdx.x] = c - 32;
}
