-- Defines :Pillion and the <Plug> mappings. Nothing else is loaded before one of them is used.
if vim.g.loaded_pillion == 1 then
  return
end
vim.g.loaded_pillion = 1

vim.api.nvim_create_user_command("Pillion", function(args)
  require("pillion.commands").run(args)
end, {
  nargs = "*",
  range = true,
  bang = true,
  desc = "Ask Pillion, or one of its subcommands",
  complete = function(lead, line, pos)
    return require("pillion.commands").complete(lead, line, pos)
  end,
})

-- A session file (:mksession) holds the names of our buffers and not their text: its empty windows are closed again.
vim.api.nvim_create_autocmd("SessionLoadPost", {
  group = vim.api.nvim_create_augroup("pillion_restored", { clear = true }),
  callback = function()
    for _, b in ipairs(vim.api.nvim_list_bufs()) do
      if vim.api.nvim_buf_get_name(b):match("^pillion://") and vim.bo[b].buftype == "" then
        for _, w in ipairs(vim.fn.win_findbuf(b)) do
          pcall(vim.api.nvim_win_close, w, true) -- not the last one
        end
        pcall(vim.api.nvim_buf_delete, b, { force = true })
      end
    end
  end,
})

local function plug(name, command, mode)
  vim.keymap.set(mode or "n", "<Plug>(pillion-" .. name .. ")", command, { silent = true, desc = "Pillion: " .. name })
end
plug("toggle", "<Cmd>Pillion chat toggle<CR>")
plug("prompt", ":Pillion ")
plug("prompt", ":Pillion ", "x")
plug("add", "<Cmd>Pillion add<CR>")
plug("add", ":Pillion add<CR>", "x")
for _, name in ipairs({ "stop", "review", "accept", "reject", "edit", "comment", "sessions", "resume", "checkpoint", "model", "mode", "log", "undo", "redo", "answer" }) do
  plug(name, "<Cmd>Pillion " .. name .. "<CR>")
end
plug("accept-all", "<Cmd>Pillion accept all<CR>")
plug("reject-all", "<Cmd>Pillion reject all<CR>")
plug("next", "<Cmd>Pillion review next<CR>")
plug("prev", "<Cmd>Pillion review prev<CR>")
plug("split", "<Cmd>Pillion review split<CR>")
plug("reset", "<Cmd>Pillion review reset<CR>")
