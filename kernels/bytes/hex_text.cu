// One thread per digit: eight threads write the eight hexadecimal digits of one number.
extern "C" __global__ void hex_text(const unsigned* x, unsigned char* text)
{
    int t = threadIdx.x;
    unsigned digit = x[t >> 3] >> (28 - 4 * (t & 7)) & 15;
    text[t] = digit < 10 ? '0' + digit : 'a' + digit - 10;
}
