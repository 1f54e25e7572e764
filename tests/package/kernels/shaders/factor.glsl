// What everything is multiplied by.
const float factor = 2.0;
