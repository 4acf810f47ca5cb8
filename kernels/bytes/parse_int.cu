// atoi: an optional sign, then digits until something else comes.
extern "C" __global__ void parse_int(const unsigned char* text, int* value)
{
    const unsigned char* s = text + threadIdx.x * 8;
    bool negative = *s == '-';
    if (negative || *s == '+')
        ++s;
    int v = 0;
    #pragma unroll 1
    for (;;) {
        unsigned digit = *s++ - '0';
        if (digit > 9)
            break;
        v = v * 10 + digit;
    }
    value[threadIdx.x] = negative ? -v : v;
}
