#include <netdb.h>
