-- The keys of a review: they exist while a buffer has open hunks, and give back what they did before.
local config = require("pillion.config")

local actions = {
  next = "next",
  prev = "prev",
  accept = "accept",
  reject = "reject",
  accept_all = "accept-all",
  reject_all = "reject-all",
  edit = "edit",
  comment = "comment",
  reset = "reset",
  split = "split",
}

---@param file pillion.ReviewFile
---@param on boolean
return function(file, on)
  local buf = file.buf
  if on and not file.mapped then
    file.mapped = {}
    for name, plug in pairs(actions) do
      local lhs = config.options.keymaps[name]
      if lhs then
        local before = vim.api.nvim_buf_call(buf, function()
          return vim.fn.maparg(lhs, "n", false, true)
        end)
        file.mapped[lhs] = before.buffer == 1 and before or false
        vim.keymap.set("n", lhs, "<Plug>(pillion-" .. plug .. ")", { buffer = buf, nowait = true, remap = true, desc = "Pillion: " .. name:gsub("_", " ") })
      end
    end
  elseif not on and file.mapped then
    for lhs, before in pairs(file.mapped) do
      pcall(vim.keymap.del, "n", lhs, { buffer = buf })
      if before then
        vim.api.nvim_buf_call(buf, function()
          pcall(vim.fn.mapset, "n", false, before)
        end)
      end
    end
    file.mapped = nil
  end
end
