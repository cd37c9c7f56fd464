/* A page that is opened as a file may not read other files: its search lists titles without excerpts. */
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
