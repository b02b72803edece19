-- The Neovim that the screen tests and pictures start: plain, without a person's own settings.
local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h:h")
vim.opt.runtimepath:prepend(here)
vim.o.swapfile = false
vim.o.shadafile = "NONE"
vim.o.number = true
vim.o.signcolumn = "yes"
vim.o.termguicolors = vim.env.PILLION_COLORS == "1"
vim.o.laststatus = 2
vim.o.ruler = false
vim.o.showcmd = false
vim.o.shortmess = vim.o.shortmess .. "IF"
vim.g.mapleader = " "
vim.cmd("syntax enable | filetype plugin indent on")
if vim.env.PILLION_SCHEME then
  vim.cmd("colorscheme " .. vim.env.PILLION_SCHEME)
end
require("pillion").setup({ cmd = vim.env.PILLION_BIN, global_keymaps = true, notify = false })
